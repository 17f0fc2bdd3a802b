export default (component) => {
  const shared = (globalThis.__specviz ??= { ready: {}, waiting: [] });
  let end;
  let gone;
  const go = () => {
    if (gone) return;
    if (!shared.ready.LIBRARY) return shared.waiting.push(go);
    shared.style(component.parentElement, "RENDERER");
    end = shared.RENDERER(component);
  };
  go();
  return () => {
    gone = true;
    end?.();
  };
};
