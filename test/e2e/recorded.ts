/** Reads the file of `--record` while the cluster runs. */
import { readFileSync } from "node:fs";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { until } from "./cluster-under-test.ts";

/** Resolves when the last view of the node in the file has this leader, which may be the node itself. */
export async function recorded(file: string, node: number, leader: number): Promise<void> {
  await until(`the file says that node ${node} follows ${leader}`, () => {
    const lines = readFileSync(file, "utf8").split("\n").slice(1, -1);
    const views = lines.map((line) => JSON.parse(line) as TraceEntry).filter((entry) => entry.kind === "view");
    return views.findLast((entry) => entry.node === node)?.view.leader === leader;
  });
}
