// React leaves attributes alone that it has not set.
export default ({ data: { name, mark } }) => {
  const menu = document.querySelector(".st-key-menu");
  menu?.setAttribute("role", "navigation");
  menu?.setAttribute("aria-label", "Pages");
  // The first page of a browser gives it its mark; it ends with the browser, and no other site sends it.
  if (!document.cookie.split("; ").some((cookie) => cookie.startsWith(name + "=")))
    document.cookie = `${name}=${mark}; path=/; SameSite=Strict`;
};
