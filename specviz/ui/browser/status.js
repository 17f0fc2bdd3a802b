export default ({ parentElement: root, data: { text } }) => {
  const region = root.querySelector(".announced");
  clearTimeout(root.__later);
  if (region.textContent !== text) root.__later = setTimeout(() => (region.textContent = text), 100);
};
