/** The index that search reads, a document for each section. Made here, asked in the browser: both build it alike. */
import MiniSearch, { type Options } from "minisearch";

export interface Found {
  readonly address: string;
  readonly page: string;
  readonly heading: string;
  readonly text: string;
}

/** As much of a section as results may show. */
const EXCERPT = 800;

/** Words that stand everywhere find nothing. */
const everywhere = new Set("a an and are as at be by for from in is it of on or that the this to what with".split(" "));

const options: Options<Found & { readonly id: number }> = {
  fields: ["page", "heading", "text"],
  storeFields: ["address", "page", "heading", "excerpt"],
  extractField: (found, field) =>
    field === "excerpt" ? found.text.slice(0, EXCERPT) : String(found[field as keyof Found]),
  processTerm: (term) => {
    const word = term.toLowerCase();
    return everywhere.has(word) ? null : word;
  },
  searchOptions: {
    boost: { page: 4, heading: 3 },
    prefix: (term) => term.length > 1,
    fuzzy: (term) => (term.length > 4 ? 0.15 : false),
    combineWith: "AND",
  },
};

/** As JSON. */
export function searchIndex(sections: readonly Found[]): string {
  const index = new MiniSearch(options);
  index.addAll(sections.map((section, id) => ({ ...section, id })));
  return JSON.stringify(index);
}

export interface Result {
  readonly address: string;
  readonly page: string;
  readonly heading: string;
  readonly excerpt: string;
  readonly terms: readonly string[];
}

export type Search = (words: string) => readonly Result[];

/** @param json of `searchIndex` */
export function searchIn(json: string): Search {
  const index = MiniSearch.loadJSON(json, options);
  return (words) =>
    index.search(words).map(({ address, page, heading, excerpt, terms }) => ({
      address,
      page,
      heading,
      excerpt,
      terms,
    }));
}
