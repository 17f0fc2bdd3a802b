// React leaves attributes alone that it has not set.
export default () => {
  const menu = document.querySelector(".st-key-menu");
  menu?.setAttribute("role", "navigation");
  menu?.setAttribute("aria-label", "Pages");
};
