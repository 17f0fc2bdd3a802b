// A masked field. What is typed is sent once, encrypted with the one-time pad from the server, and cleared here.
// As state, not as a trigger: a trigger is reported once, and a click right after it can cancel the page run that got the
// report. The server recognises by the number of the pad what it has received already.
export default ({ parentElement: root, data, setStateValue }) => {
  const box = root.querySelector("input");
  const [set, forget] = root.querySelectorAll("button");
  const note = root.querySelector(".note");
  const show = (held) => {
    root.querySelector(".entry").hidden = held;
    root.querySelector(".held").hidden = !held;
  };
  // There is a key already; "Change" opens the field for another one.
  const held = data.state === "set" || data.state === "environment";
  if (root.__state !== data.state) show(held);
  root.__state = data.state;
  root.querySelector(".held span").textContent = data.text;
  forget.textContent = data.button;
  box.placeholder = held ? "" : data.text;
  box.disabled = set.disabled = data.state === "closed";
  note.textContent = data.note;
  note.hidden = !data.note;
  const encrypt = (key) =>
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
    setStateValue("key", { number: data.pad.number, key: encrypt(key).join("") });
  };
  // "change" is fired by Enter and when the field loses the focus, also to the Run button.
  box.onchange = send;
  set.onclick = send;
  forget.onclick = () => {
    if (data.state === "set") return setStateValue("forget", data.pad.number);
    show(false);
    box.focus();
  };
};
