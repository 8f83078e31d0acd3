/** The report of a campaign as one page of HTML, with a picture of each run that was kept. */
import { drawnAs } from "../../protocols/message-inks.ts";
import { excerptOf } from "../../trace/excerpt.ts";
import { readTrace } from "../../trace/file.ts";
import { drawSvg } from "../../trace/picture/svg.ts";
import { escaped } from "../../trace/picture/svg-shapes.ts";
import { counted, figure } from "../paragraph.ts";
import type { SmallestRun } from "./smallest.ts";
import { type CampaignSummary, type ExperimentSummary, RUNS } from "./summary.ts";

const MAX_DRAWN = 400;

/** @param seconds how long it took, of everybody together where that is known. */
export function campaignPage(summary: CampaignSummary, seconds: number): string {
  const { campaign, runs, digest, experiments } = summary;
  const failing = experiments.filter(({ failures }) => failures.length > 0).length;
  const verdict = failing === 0 ? "no run failed" : `${failing} of ${experiments.length} experiments have failing runs`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Campaign ${escaped(campaign)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff }
table { border-collapse: collapse } th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child, td.text { text-align: left } figure { margin: 1rem 0; overflow-x: auto }
@media screen and (prefers-color-scheme: dark) { body { color: #ece7dc; background: #1a1d22 } th, td { border-color: #3b434c } }
</style>
<h1>Campaign ${escaped(campaign)}</h1>
<p>${counted(runs, RUNS)} in ${figure(Math.round(seconds))} s: ${verdict}. Digest <code>${digest}</code>.</p>
<table>
<tr><th>experiment<th>kind<th>seeds<th>runs<th>messages or moves<th>virtual ms<th>failing runs</tr>
${experiments.map(row).join("\n")}
</table>
${experiments.flatMap(failuresOf).join("\n")}
</html>
`;
}

function row({ name, kind, seeds, runs, messages, moves, timeMs, failures }: ExperimentSummary): string {
  const failing = failures.map(({ what, count }) => `${escaped(what)}: ${figure(count)}`).join("<br>");
  const range = `${seeds.from} to ${seeds.from + seeds.count - 1}`;
  const cells = [
    escaped(name),
    kind,
    range,
    figure(runs),
    spread(messages ?? moves),
    spread(timeMs),
    failing || "none",
  ];
  return `<tr>${cells.map((cell) => `<td>${cell}`).join("")}</tr>`;
}

const spread = (values: ExperimentSummary["timeMs"]): string =>
  values === null ? "" : `${figure(values.min)} … ${figure(Math.round(values.mean * 10) / 10)} … ${figure(values.max)}`;

function failuresOf({ name, failures }: ExperimentSummary): string[] {
  return failures.map(
    ({ what, count, seeds, kept }) => `<h2>${escaped(name)}: ${escaped(what)}</h2>
<p>${counted(count, RUNS)}, with seeds ${seeds.join(", ")}${count > seeds.length ? " …" : ""}</p>${kept === null ? "" : keptRun(kept)}`,
  );
}

function keptRun({ seed, moves, shrunkTo, trace }: SmallestRun): string {
  const run = readTrace(trace);
  const made = shrunkTo === null ? "as it was" : `shrunk from ${figure(moves ?? 0)} to ${figure(shrunkTo)} moves`;
  const drawn = drawSvg(excerptOf(run), {
    ...drawnAs(run.header.protocol),
    maxEntries: MAX_DRAWN,
  });
  return `
<p>The smallest has seed ${seed}; here it is ${made}.</p>
<figure>${drawn}</figure>`;
}
