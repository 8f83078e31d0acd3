/** Pictures of runs become the runs themselves, when somebody asks for one: each is the laboratory in a frame. */

/** Of a frame, above and below. */
const BORDERS = 2;

export function enableRuns(): void {
  for (const frame of document.querySelectorAll<HTMLIFrameElement>("figure.run iframe")) grow(frame);
  for (const figure of document.querySelectorAll<HTMLElement>("figure.run[data-run]")) offer(figure);
}

function offer(figure: HTMLElement): void {
  const button = figure.querySelector<HTMLButtonElement>("[data-start]");
  const picture = figure.querySelector<HTMLElement>("a");
  if (button === null || picture === null) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const running = figure.querySelector("iframe");
    running?.remove();
    picture.hidden = running === null;
    button.textContent = running === null ? "Show the picture" : "Run it here";
    if (running === null) figure.prepend(frameOf(figure));
  });
}

function frameOf(figure: HTMLElement): HTMLIFrameElement {
  const frame = document.createElement("iframe");
  frame.src = figure.dataset.run ?? "";
  frame.title = figure.dataset.title ?? "";
  grow(frame);
  return frame;
}

/** Makes a frame as high as what is in it, so that nothing scrolls inside the page. */
function grow(frame: HTMLIFrameElement): void {
  const watch = (): void => {
    const inner = frame.contentDocument?.documentElement;
    if (!inner) return;
    new ResizeObserver(() => {
      const height = Math.ceil(inner.getBoundingClientRect().height);
      if (height > 120) frame.style.height = `${height + BORDERS}px`;
    }).observe(inner);
  };
  frame.addEventListener("load", watch);
  if (frame.contentDocument?.readyState === "complete") watch();
}
