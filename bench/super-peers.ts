/**
 * Super-peers by both methods, beside as many drawn by lot: how far it is to one, how evenly they are spread, how many
 * there are, and how many nodes each serves.
 *
 *     node build/bench/super-peers.js [--nodes N] [--share S] [--quick] [--json] [--picture FILE]
 */
import { writeFileSync } from "node:fs";
import { commandLine } from "./command-line.ts";
import type { Figures } from "./super-peers/figures.ts";
import { byLotInSpace, byLotOnRing, dht, tokens, type Wanted } from "./super-peers/methods.ts";
import { picture } from "./super-peers/picture.ts";

const FULL = 10_000;
const QUICK = 1_000;
/** A super-peer should serve at most so many times the mean. */
const LIMIT = 2;

const { values, refuse, whole } = commandLine("super-peers", {
  nodes: { such: "N", help: `how many there are, ${FULL} by default` },
  share: { such: "S", default: "0.01", help: "how many of them should be super-peers, 0.01 by default" },
  quick: { help: `${QUICK} nodes` },
  json: { help: "for machines" },
  picture: { such: "FILE", help: "draws them, as SVG" },
});

const count = whole("nodes", values.nodes ?? String(values.quick ? QUICK : FULL), 20, 50_000);
const share = Number(values.share);
if (!(share > 0 && share <= 0.5 && share * count >= 2))
  refuse(`expected --share to be at most 0.5, and at least two nodes, got ${values.share}`);

const wanted: Wanted = { nodes: Array.from({ length: count }, (_, i) => i), share, limit: LIMIT / share };
const ringed = dht(wanted);
const spread = tokens(wanted);
const lotsOnRing = byLotOnRing(wanted, ringed.figures.superPeers);
const lotsInSpace = byLotInSpace(wanted, spread.figures.superPeers);

const rows: readonly (readonly [name: string, overlay: string, figures: Figures])[] = [
  ["super-peer-dht", "ring", ringed.figures],
  ["by lot", "ring", lotsOnRing.figures],
  ["super-peer-tokens", "space", spread.figures],
  ["by lot", "space", lotsInSpace.figures],
];

if (values.picture !== undefined) writeFileSync(values.picture, picture(wanted, ringed, spread, lotsInSpace));
if (values.json === true) {
  const { served: _ring, figures: _figures, ...ring } = ringed;
  const { served: _space, figures: _more, ...space } = spread;
  const methods = rows.map(([method, overlay, each]) => ({ method, overlay, ...each }));
  console.log(JSON.stringify({ nodes: count, share, limit: wanted.limit, methods, ring, tokens: space }, null, 2));
} else console.log(report().join("\n"));

function report(): string[] {
  const percent = (part: number): string => `${(100 * part).toFixed(2)} %`;
  const header = [
    "method",
    "super-peers",
    "share",
    "distance",
    "95 %",
    "unevenness",
    "load",
    "most",
    `over ${wanted.limit}`,
  ];
  const cells = rows.map(([name, overlay, { distance, unevenness, superPeers, share, load }]) => [
    `${name}, ${overlay}`,
    superPeers.toFixed(0),
    percent(share),
    distance.mean.toFixed(3),
    distance.p95.toFixed(3),
    unevenness.toFixed(2),
    load.mean.toFixed(0),
    load.most.toFixed(0),
    percent(load.overLimit),
  ]);
  const all = [header, ...cells];
  const widths = header.map((_, column) => Math.max(...all.map((row) => (row[column] as string).length)));
  const lines = all.map((row) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] as number) : cell.padStart(widths[i] as number))).join("  "),
  );
  const { hops } = ringed;
  return [
    `${count} nodes, of which ${percent(share)} should be super-peers, each for at most ${wanted.limit} nodes`,
    "",
    ...lines,
    "",
    "distance: from a node to its super-peer in the unit torus, whose farthest points are 0.707 apart",
    "unevenness: of the arcs between super-peers on the ring, or of the areas nearest to each; deviation by mean",
    "by lot: the mean of 20 placements of as many super-peers",
    "",
    `the ring: a lookup of any identifier takes ${hops.any.toFixed(2)} hops, ½·log2 N is ${hops.formula.toFixed(2)}; of the beginning`,
    `  of its own region, just behind it, ${hops.ownRegion.toFixed(2)}; ${ringed.messages.toFixed(1)} messages a node and round`,
    `the tokens: ${spread.tokens.before}, and in the end ${spread.tokens.after}; ${spread.movesPerToken.toFixed(1)} moves each, the last in round ${spread.lastMove}, none in the`,
    `  ${spread.rounds - spread.lastMove} rounds after it; ${percent(spread.servedByNearest)} of the nodes use the nearest; ${spread.messages.toFixed(2)} messages a node and round`,
  ];
}
