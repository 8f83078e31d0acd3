/** Where the reader is: the heading on the screen is marked in the contents, the page in the way through its door. */

export function enableReading(): void {
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
