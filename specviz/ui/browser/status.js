export default ({ parentElement: root, data: { said } }) => {
  const region = root.querySelector(".announced");
  clearTimeout(root.__later);
  if (region.textContent !== said) root.__later = setTimeout(() => (region.textContent = said), 100);
};
