// The end of a library: marks it as loaded and starts the components that wait for it.
export default () => {
  const shared = globalThis.__specviz;
  shared.ready.LIBRARY = true;
  for (const go of shared.waiting.splice(0)) go();
};
