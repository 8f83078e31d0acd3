/** Code of the repository gets its colours, code can be copied; what is wider than the page can be scrolled by keyboard. */

/** Pages of the docs have theirs already. */
export async function colourSource(): Promise<void> {
  const block = document.querySelector<HTMLElement>(".source pre");
  const code = block?.querySelector("code");
  if (!block || !code) return;
  const { highlighted } = await import("../code.ts");
  code.innerHTML = highlighted(code.textContent, block.dataset.language ?? "");
}

export function enableCopying(): void {
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

export function enableScrolling(): void {
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
