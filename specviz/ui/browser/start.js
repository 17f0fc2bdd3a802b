// The polled component: a few hundred bytes that call the renderer once its library is here.
export default (component) => {
  const shared = (globalThis.__specviz ??= { ready: {}, waiting: [] });
  let end;
  let gone = false;
  const go = () => {
    if (gone) return;
    if (shared.ready.LIBRARY) end = shared.RENDERER(component);
    else shared.waiting.push(go);
  };
  go();
  return () => {
    gone = true;
    end?.();
  };
};
