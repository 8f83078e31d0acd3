/** What the pages of the site do beyond being read: theme, search, runs in place of their pictures, copying of code. */
import "../../studio/src/page.css";
import "./site.css";
import { enableSearch } from "./search-dialog.ts";

/** The laboratory keeps the theme under the same key, and frames of it follow at once. */
const KEY = "coterie.theme";

function enableThemes(): void {
  const label = document.querySelector<HTMLElement>(".theme");
  const choice = label?.querySelector("select");
  if (!label || !choice) return;
  choice.value = kept() ?? "auto";
  label.hidden = false;
  choice.addEventListener("change", () => {
    keep(choice.value);
    for (const page of [document, ...laboratories()]) show(page, choice.value);
  });
}

function show(page: Document, theme: string): void {
  if (theme === "auto") delete page.documentElement.dataset.theme;
  else page.documentElement.dataset.theme = theme;
}

const laboratories = (): Document[] =>
  [...document.querySelectorAll("iframe")].flatMap(({ contentDocument }) => contentDocument ?? []);

function kept(): string | null {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null; // Storage is forbidden here.
  }
}

function keep(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The choice lasts as long as the page.
  }
}

/** The heading on the screen is marked in the contents, the page in the way through its door. */
function enableReading(): void {
  const way = document.querySelector<HTMLElement>(".way");
  const fold = way?.querySelector<HTMLDetailsElement>(".fold");
  const isNarrow = matchMedia("(max-width: 900px)");
  const settle = (): void => {
    if (fold) fold.open = !isNarrow.matches;
  };
  settle();
  isNarrow.addEventListener("change", settle);
  const current = way?.querySelector<HTMLElement>('[aria-current="page"]');
  if (way && current && !isNarrow.matches) way.scrollTop = current.offsetTop - way.clientHeight / 3;
  followHeadings();
}

function followHeadings(): void {
  const contents = document.querySelector<HTMLElement>(".contents");
  if (contents === null) return;
  const links = new Map(
    [...contents.querySelectorAll("a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]),
  );
  const headings = [...document.querySelectorAll<HTMLElement>("main h2, main h3")].filter(({ id }) => links.has(id));
  let marked: HTMLElement | undefined;
  const mark = (): void => {
    const above = headings.filter((heading) => heading.getBoundingClientRect().top < 120).at(-1);
    const link = links.get((above ?? headings[0])?.id ?? "");
    if (link === marked) return;
    marked?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "true");
    if (link) contents.scrollTop = link.offsetTop - contents.clientHeight / 2;
    marked = link;
  };
  mark();
  addEventListener("scroll", mark, { passive: true });
}

/** Of a frame, above and below. */
const BORDERS = 2;

/** Pictures of runs become the runs themselves, when somebody asks for one: each is the laboratory in a frame. */
function enableRuns(): void {
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

/** Pages of the docs have theirs already. */
async function colourSource(): Promise<void> {
  const block = document.querySelector<HTMLElement>(".source pre");
  const code = block?.querySelector("code");
  if (!block || !code) return;
  const { highlighted } = await import("../code.ts");
  code.innerHTML = highlighted(code.textContent, block.dataset.language ?? "");
}

function enableCopying(): void {
  if (navigator.clipboard === undefined) return; // Only pages of a safe origin have it.
  for (const block of document.querySelectorAll<HTMLElement>("main pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button copy";
    button.textContent = "Copy";
    button.addEventListener("click", () => {
      void navigator.clipboard.writeText(block.querySelector("code")?.textContent ?? "").then(
        () => say("Copied"),
        () => say("Not allowed here"),
      );
    });
    const say = (outcome: string): void => {
      button.textContent = outcome;
      setTimeout(() => (button.textContent = "Copy"), 1_500);
    };
    const shell = document.createElement("div");
    shell.className = "code";
    block.replaceWith(shell);
    shell.append(block, button);
  }
}

/** What is wider than the page can be scrolled by keyboard. */
function enableScrolling(): void {
  const mark = (): void => {
    for (const block of document.querySelectorAll<HTMLElement>("main .table, main pre")) {
      const isWider = block.scrollWidth > block.clientWidth;
      if (!isWider) {
        for (const name of ["tabindex", "role", "aria-label"]) block.removeAttribute(name);
        continue;
      }
      block.tabIndex = 0;
      block.setAttribute("role", "group");
      block.setAttribute("aria-label", block.tagName === "PRE" ? "Code, scrolls sideways" : "Table, scrolls sideways");
    }
  };
  mark();
  addEventListener("resize", mark);
}

enableThemes();
enableSearch();
enableReading();
enableRuns();
enableCopying();
enableScrolling();
void colourSource();
