// A masked field. What is typed leaves it once, covered with the one-time pad that came along, and is cleared here.
// As state, not as a trigger: a trigger is told once, and a click that follows at once can stop the run of the page that
// was told. The number of the pad tells the server what it has had already.
export default ({ parentElement: root, data, setStateValue }) => {
  const box = root.querySelector("input");
  const [set, forget] = root.querySelectorAll("button");
  const note = root.querySelector(".note");
  const show = (held) => {
    root.querySelector(".entry").hidden = held;
    root.querySelector(".held").hidden = !held;
  };
  // A key is there already; "Change" opens the field for another one.
  const held = data.state === "set" || data.state === "environment";
  if (root.__state !== data.state) show(held);
  root.__state = data.state;
  root.querySelector(".held span").textContent = data.said;
  forget.textContent = data.button;
  box.placeholder = held ? "" : data.said;
  box.disabled = set.disabled = data.state === "closed";
  note.textContent = data.note;
  note.hidden = !data.note;
  const cover = (key) =>
    [...key].map((byte, i) => (byte ^ parseInt(data.pad.noise.slice(2 * i, 2 * i + 2), 16)).toString(16).padStart(2, "0"));
  const send = () => {
    const key = new TextEncoder().encode(box.value.trim());
    box.value = "";
    if (!key.length) return;
    if (2 * key.length > data.pad.noise.length) {
      note.textContent = data.tooLong;
      note.hidden = false;
      return;
    }
    setStateValue("key", { number: data.pad.number, key: cover(key).join("") });
  };
  // "change" comes with Enter and when the field is left, also towards the Run button.
  box.onchange = send;
  set.onclick = send;
  forget.onclick = () => {
    if (data.state === "set") return setStateValue("forget", data.pad.number);
    show(false);
    box.focus();
  };
};
