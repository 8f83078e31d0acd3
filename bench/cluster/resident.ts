/** How much memory processes have, as the kernel counts it. */
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";

const KIB = 1_024;

export function residentBytesOf(children: readonly ChildProcess[]): number {
  const kib = children.map(({ pid }) => {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
  });
  return KIB * kib.reduce((sum, each) => sum + each, 0);
}
