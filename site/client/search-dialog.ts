/** Search: `/` or Ctrl and K opens it, arrows move among results, Enter follows one, Escape closes it. */
import type { Result, Search } from "../search.ts";

const MOST = 12;

export function enableSearch(): void {
  const opener = document.querySelector<HTMLButtonElement>("[data-search]");
  if (opener === null) return;
  const dialog = made();
  document.body.append(dialog);
  const input = dialog.querySelector("input") as HTMLInputElement;
  const open = (): void => {
    if (dialog.open) return;
    dialog.showModal();
    input.select();
    void show(dialog);
  };
  opener.hidden = false;
  opener.addEventListener("click", open);
  addEventListener("keydown", (event) => {
    const isWriting = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
    const isAsked = (event.key === "/" && !isWriting) || (event.key === "k" && (event.ctrlKey || event.metaKey));
    if (!isAsked) return;
    event.preventDefault();
    open();
  });
  input.addEventListener("input", () => void show(dialog));
  dialog.addEventListener("keydown", (event) => move(dialog, event));
  dialog.addEventListener("click", (event) => {
    const isOutside = event.target === dialog;
    const isFollowed = event.target instanceof Element && event.target.closest("a") !== null;
    if (isOutside || isFollowed) dialog.close();
  });
}

function made(): HTMLDialogElement {
  const dialog = document.createElement("dialog");
  dialog.className = "search";
  dialog.setAttribute("aria-label", "Search");
  dialog.innerHTML = `<form method="dialog" role="search">
    <input type="search" aria-label="Search the documentation" placeholder="Search the documentation" autocomplete="off" spellcheck="false">
    <button class="button" value="close">Close</button>
  </form>
  <p class="state" role="status"></p>
  <ol class="results"></ol>`;
  return dialog;
}

let index: Promise<Search> | null = null;

/** The index is fetched when somebody first searches. */
function loaded(): Promise<Search> {
  index ??= Promise.all([
    import("../search.ts"),
    fetch(new URL("assets/search.json", siteRoot())).then((answer) => {
      if (!answer.ok) throw new Error(`the index of the search answers ${answer.status}`);
      return answer.text();
    }),
  ])
    .then(([{ searchIn }, json]) => searchIn(json))
    .catch((error: unknown) => {
      index = null; // The next key tries again.
      throw error;
    });
  return index;
}

const siteRoot = (): URL => new URL(document.documentElement.dataset.root || "./", location.href);

async function show(dialog: HTMLDialogElement): Promise<void> {
  const input = dialog.querySelector("input") as HTMLInputElement;
  const state = dialog.querySelector(".state") as HTMLElement;
  const list = dialog.querySelector(".results") as HTMLElement;
  const words = input.value;
  try {
    const search = await loaded();
    if (input.value !== words) return; // Another key was faster.
    const results = words.trim() === "" ? [] : search(words);
    list.replaceChildren(...results.slice(0, MOST).map(itemOf));
    state.textContent = summary(words, results.length);
  } catch (error) {
    list.replaceChildren();
    state.textContent = `Search does not work: ${(error as Error).message}`;
  }
}

function summary(words: string, count: number): string {
  if (words.trim() === "") return "Words of the docs, such as lease, fencing token or quorum.";
  if (count === 0) return `Nothing was found for “${words}”.`;
  return count > MOST ? `${count} places, the best ${MOST}` : count === 1 ? "1 place" : `${count} places`;
}

function itemOf({ address, page, heading, excerpt, terms }: Result): HTMLElement {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = new URL(address, siteRoot()).href;
  const title = document.createElement("strong");
  title.textContent = heading === "" ? page : heading;
  const where = document.createElement("span");
  where.textContent = heading === "" ? "" : page;
  const excerpted = document.createElement("p");
  excerpted.append(...marked(around(excerpt, terms), terms));
  link.append(title, " ", where, excerpted);
  item.append(link);
  return item;
}

/** The part of a text where the first of the words stands. */
function around(text: string, terms: readonly string[]): string {
  const at = patternOf(terms)?.exec(text)?.index ?? 0;
  const begin = at < 60 ? 0 : text.indexOf(" ", at - 50) + 1;
  const part = text.slice(begin, begin + 170);
  return `${begin > 0 ? "… " : ""}${part}${begin + 170 < text.length ? " …" : ""}`;
}

function marked(text: string, terms: readonly string[]): (string | HTMLElement)[] {
  const pattern = patternOf(terms);
  if (pattern === null) return [text];
  return text.split(pattern).map((part, at) => {
    if (at % 2 === 0) return part;
    const mark = document.createElement("mark");
    mark.textContent = part;
    return mark;
  });
}

function patternOf(terms: readonly string[]): RegExp | null {
  const words = [...terms]
    .sort((a, b) => b.length - a.length)
    .map((term) => term.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  return words.length === 0 ? null : new RegExp(`(${words.join("|")})`, "iu");
}

function move(dialog: HTMLDialogElement, event: KeyboardEvent): void {
  const input = dialog.querySelector("input") as HTMLInputElement;
  const links = [...dialog.querySelectorAll<HTMLAnchorElement>(".results a")];
  const at = links.indexOf(document.activeElement as HTMLAnchorElement);
  if (event.key === "Enter" && document.activeElement === input) {
    event.preventDefault();
    links[0]?.click();
    return;
  }
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0 || links.length === 0) return;
  event.preventDefault();
  (at + step < 0 ? input : links[Math.min(at + step, links.length - 1)])?.focus();
}
