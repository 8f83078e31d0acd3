/** The names of headings in links, as GitHub gives them. */
import GithubSlugger from "github-slugger";

/** For one page: from a heading's markdown to its name; a second heading of a name is counted. */
export function anchors(): (heading: string) => string {
  const slugger = new GithubSlugger();
  return (heading) => slugger.slug(heading.replaceAll(/<[^>]+>|[`*]|\[([^\]]*)\]\([^)]*\)/g, "$1"));
}
