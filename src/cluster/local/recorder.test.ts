import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { PATIENCE } from "../../../test/patience.ts";
import type { TraceEntry, TraceHeader } from "../../trace/entry.ts";
import { readTrace } from "../../trace/file.ts";
import { type RecorderOptions, record } from "./recorder.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

const header: TraceHeader = {
  kind: "trace",
  version: 1,
  madeBy: "cluster",
  protocol: "bully",
  form: "node",
  variant: null,
  options: {},
  nodes: [0, 1],
  seed: null,
  violation: null,
};
const line = (node: number, at: number): string => JSON.stringify({ at, node, kind: "timeout", timer: "answer" });
const recording = (name: string, options: Partial<RecorderOptions> = {}) => {
  const file = join(folder, name);
  const failures: string[] = [];
  const onFailure = ({ message }: Error): void => void failures.push(message);
  return { file, failures, recorder: record({ file, force: false, header, onFailure, ...options }) };
};

describe("a recorder", () => {
  it("writes a trace file, and nothing after it was closed", async () => {
    const { file, recorder, failures } = recording("whole.jsonl");
    for (let at = 1; at <= 1_000; at++) recorder.write(at % 2, line(at % 2, at));
    const closing = recorder.close();
    recorder.write(0, line(0, 2_000));
    expect(await closing).toBe(1_000);
    expect(await recorder.close()).toBe(1_000);
    const { header: read, entries, torn } = readTrace(readFileSync(file, "utf8"));
    expect({ read, torn, failures }).toEqual({ read: header, torn: false, failures: [] });
    expect(entries.map(({ at }) => at)).toEqual(Array.from({ length: 1_000 }, (_, i) => i + 1));
  });

  it("never waits for the disk: counts entries that do not fit, and writes a gap of their node in their place", async () => {
    const { file, recorder } = recording("slow.jsonl", { maxQueueBytes: 4_000 });
    for (let at = 1; at <= 500; at++) recorder.write(at % 2, line(at % 2, at));
    let last = 500;
    await vi.waitFor(() => {
      last += 1;
      recorder.write(0, line(0, last)); // This is lost too, because the disk has not caught up yet.
      const { at } = JSON.parse(readFileSync(file, "utf8").trimEnd().split("\n").at(-1) ?? "") as TraceEntry;
      expect(at).toBeGreaterThan(500);
    }, PATIENCE);
    await recorder.close();
    const entries = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((text) => JSON.parse(text) as TraceEntry);
    const gaps = entries.flatMap((entry, index) => (entry.kind === "gap" ? [{ ...entry, index }] : []));
    const kept = entries.length - gaps.length;
    expect(gaps.map(({ node }) => node)).toEqual([0, 1]);
    expect(gaps.reduce((sum, { dropped }) => sum + dropped, 0)).toBe(last - kept);
    const place = gaps[0]?.index ?? 0;
    expect(entries[place - 1]?.at).toBeLessThan(500);
    expect(entries[place + 1]?.at).toBeGreaterThan(500);
    expect(entries.at(-2)).toMatchObject({ node: 0, at: last });
  });

  it("rejects an existing file, unless it may overwrite it, and a missing folder", async () => {
    const file = join(folder, "old.jsonl");
    writeFileSync(file, "something old\n");
    expect(() => recording("old.jsonl")).toThrow(
      `${file} already exists: use a new name, or overwrite it with --force`,
    );
    await recording("old.jsonl", { force: true }).recorder.close();
    expect(readFileSync(file, "utf8")).toBe(`${JSON.stringify(header)}\n`);
    expect(() => recording("no/such/folder.jsonl")).toThrow("(ENOENT)");
  });

  it.runIf(process.platform === "linux")("reports a full disk once, and continues without recording", async () => {
    const { recorder, failures } = recording("full.jsonl", { file: "/dev/full", force: true });
    for (let at = 1; at <= 10; at++) {
      recorder.write(0, line(0, at));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await recorder.close();
    expect(failures).toEqual([expect.stringMatching(/^cannot record to \/dev\/full any further: ENOSPC/)]);
  });
});
