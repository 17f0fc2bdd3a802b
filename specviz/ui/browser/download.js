// A button that asks the server for a text and saves it under its name. The answer to a question comes once; which
// questions are open is known to the page alone, so an answer that is drawn again saves nothing.
const PATIENCE_MS = 30_000;
const ASK_AGAIN_MS = 2_500; // a question is lost when Streamlit sends it along with another part's; later half as often

// Of the page, not of an element: a run of the whole page may draw the button anew while a question is open.
const { open, buttons } = (globalThis.__specvizDownloads ??= { open: new Map(), buttons: new Map() });

export default (component) => {
  const { parentElement: root, data } = component;
  const button = (root.__download ??= newButton(root, data.key));
  buttons.set(data.key, button);
  button.component = component; // the newest one: only that reaches the server
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
    const said = busy ? "Preparing…" : button.label;
    if (status.textContent !== said) status.textContent = said;
    face.setAttribute("aria-disabled", String(busy));
    note.textContent = button.complaint;
    note.hidden = !button.complaint;
  };
  face.onclick = () => open.has(key) || ask(key);
  return button;
}

function ask(key) {
  const asked = `${Date.now()}-${Math.random()}`;
  const giveUp = setTimeout(() => end(key, "Nothing came within 30 seconds. Try again."), PATIENCE_MS);
  const question = { asked, giveUp };
  let times = 0;
  const send = (wait) => {
    buttons.get(key).component.setTriggerValue("ask", { asked, times: ++times });
    question.again = setTimeout(send, wait, 2 * wait);
  };
  open.set(key, question);
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
  // No later answer holds the text: the next one lets go of it.
  buttons.get(key).component.setTriggerValue("got", asked);
}

function save(text, name, mime) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: mime }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
