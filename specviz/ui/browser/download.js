// A button that requests a text from the server and saves it as a file. Open requests are known to the page only, so an
// answer that is drawn again saves nothing.
const GIVE_UP_MS = 30_000;
const ASK_AGAIN_MS = 2_500; // a request is lost when Streamlit sends it together with another component's; then with doubled waits

// Kept per page, not per element: a page run may draw the button again while a request is open.
const { open, buttons } = (globalThis.__specvizDownloads ??= { open: new Map(), buttons: new Map() });

export default (component) => {
  const { parentElement: root, data } = component;
  const button = (root.__download ??= newButton(root, data.key));
  buttons.set(data.key, button);
  button.component = component; // only the newest one reaches the server
  button.label = data.label;
  root.querySelector("button").title = data.help;
  if (data.text === undefined) button.show();
  else take(data);
};

function newButton(root, key) {
  const [face, status, note] = ["button", ".status", ".note"].map((part) => root.querySelector(part));
  const button = { complaint: "" };
  button.show = () => {
    const busy = open.has(key);
    const text = busy ? "Preparing…" : button.label;
    if (status.textContent !== text) status.textContent = text;
    face.setAttribute("aria-disabled", String(busy));
    note.textContent = button.complaint;
    note.hidden = !button.complaint;
  };
  face.onclick = () => open.has(key) || ask(key);
  return button;
}

function ask(key) {
  const asked = `${Date.now()}-${Math.random()}`;
  const giveUp = setTimeout(() => end(key, "No answer within 30 seconds. Try again."), GIVE_UP_MS);
  const request = { asked, giveUp };
  let times = 0;
  const send = (wait) => {
    buttons.get(key).component.setTriggerValue("ask", { asked, times: ++times });
    request.again = setTimeout(send, wait, 2 * wait);
  };
  open.set(key, request);
  buttons.get(key).complaint = "";
  buttons.get(key).show();
  send(ASK_AGAIN_MS);
}

function end(key, complaint = "") {
  const { again, giveUp } = open.get(key);
  clearTimeout(again);
  clearTimeout(giveUp);
  open.delete(key);
  buttons.get(key).complaint = complaint;
  buttons.get(key).show();
}

function take({ key, asked, text, name, mime }) {
  if (open.get(key)?.asked === asked) {
    save(text, name, mime);
    end(key);
  }
  // The server drops the text with its next answer.
  buttons.get(key).component.setTriggerValue("got", asked);
}

function save(text, name, mime) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: mime }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
