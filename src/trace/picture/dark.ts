/**
 * Dark mode for pictures: a second set of colors in a media query, after the rules for paper. Renderers without support
 * for media queries, such as PNG converters, use the colors for paper.
 */

/** The dark counterpart of each color. Pages use the same inks: see studio/src/page.css. */
const DARK: Readonly<Record<string, string>> = {
  // Background and text.
  "#ffffff": "#1a1d22",
  "#1c2733": "#ece7dc",
  "#1d2733": "#ece7dc",
  "#46525f": "#c6b7bf",
  "#5b6875": "#aab4be",
  "#7a8794": "#8b95a1",
  "#9aa5b0": "#6b7580",
  "#c3ccd5": "#59636d",
  "#c9d3dd": "#4a5663",
  "#e3e8ed": "#2f353c",
  "#e8ecf0": "#2a2f36",
  "#f2f5f8": "#262b32",
  // Inks of messages.
  "#1f5fa8": "#81b1ff",
  "#a8431a": "#e5956a",
  "#17683f": "#6fcb85",
  "#7a3a9c": "#da95f5",
  "#7d5a00": "#d9ba3f",
  "#a02060": "#f780a9",
  "#1d6d78": "#38ccd9",
  "#4b5563": "#c6b7bf",
  // Deliveries, held messages, errors.
  "#0b5427": "#6fd393",
  "#0f6b33": "#6fd393",
  "#fae6b1": "#4a3d17",
  "#946300": "#c99a3a",
  "#f2c200": "#a87400",
  "#b3261e": "#f0836d",
  "#8c1d18": "#f2a297",
  "#fdeceb": "#3d211f",
  "#e2a29e": "#8f4a45",
  "#fbdcd8": "#43221f",
  "#efe6f5": "#32263d",
  // Operations and their order.
  "#dcebfa": "#1f3247",
  "#2f6fab": "#81b1ff",
  "#17446f": "#b9d6f5",
  "#8a6d00": "#d9b64f",
  "#6b5500": "#d9b64f",
  // Lines of measurements, their grid, and dots.
  "#d5dde5": "#343b43",
  "#c3ccd6": "#3b434c",
  "#8fa0b3": "#6b7884",
  "#5b6b7c": "#a5b2bf",
  "#1d4ed8": "#8aaefb",
  "#0f766e": "#4fc4b6",
  "#7c3aed": "#bb98f8",
  "#c2410c": "#f28f5c",
  "#b45309": "#e0a452",
  "#15803d": "#5fca86",
  "#0369a1": "#63bdf0",
};

const COLOUR = /#[\da-f]{6}\b/g;

/**
 * Returns the media query for a style's rules, which are one per line, and for the colors that elements set themselves.
 */
export function darkStyle(style: string, elements: string, prefix = ""): string {
  const rules = [...style.matchAll(/^\s*([^{}]+?) \{ (.+?);? \}$/gm)].flatMap(([, selector, declared = ""]) => {
    const coloured = declared.split("; ").filter((each) => each.search(COLOUR) >= 0);
    return coloured.length === 0 ? [] : [`${selector} { ${coloured.join("; ").replace(COLOUR, darkOf)} }`];
  });
  const named = new Set([...elements.matchAll(/(?:fill|stroke)="#[\da-f]{6}"/g)].map(([attribute]) => attribute));
  const own = [...named].sort().map((attribute) => {
    const [property, , colour] = attribute.split(/(="|")/) as [string, string, string];
    return `${prefix}[${attribute}] { ${property}: ${darkOf(colour)} }`;
  });
  return ["@media screen and (prefers-color-scheme: dark) {", ...own, ...rules, "}"].join("\n");
}

/** Adds a dark style to a picture whose elements set their own colors. */
export function inDark(svg: string): string {
  const style = darkStyle("", svg);
  return svg.replace("</title>", `</title>\n<style>\n${style}\n</style>`);
}

function darkOf(colour: string): string {
  const dark = DARK[colour];
  if (dark === undefined) throw new Error(`expected a color with a dark variant, got ${colour}`);
  return dark;
}
