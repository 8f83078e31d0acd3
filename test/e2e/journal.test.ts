/**
 * Checks journals on real processes: a value that a majority accepted stays decided, no matter which processes are
 * killed, and lost writes are reported.
 */
import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { ClusterUnderTest, Coterie, coterie, endAll, occupyPort, TSX, until } from "./cluster-under-test.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
});
afterEach(async () => {
  await endAll();
  rmSync(folder, { recursive: true });
});

async function propose(admin: string, value: string): Promise<void> {
  const response = await fetch(`${admin}/command`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ type: "propose", value }),
  });
  expect(await response.text()).not.toContain("error");
  expect(response.ok).toBe(true);
}

type Decision = { node: number; value: string };

describe("`coterie up --protocol paxos`", () => {
  const NODES = [0, 1, 2];

  function entriesOf(file: string): TraceEntry[] {
    const lines = readFileSync(file, "utf8").split("\n").slice(1, -1);
    return lines.map((line) => JSON.parse(line) as TraceEntry);
  }
  function decisions(file: string): Decision[] {
    return entriesOf(file).flatMap((entry) => {
      if (entry.kind !== "event" || entry.event.type !== "decided") return [];
      return [{ node: entry.node, value: (entry.event as unknown as Decision).value }];
    });
  }
  const adminOf = (cluster: ClusterUnderTest, node: number): string =>
    cluster.ready.nodes.find(({ id }) => id === node)?.admin as string;

  async function allDecided(cluster: ClusterUnderTest, file: string, count: number): Promise<void> {
    await until(
      () => `${count} decisions are recorded, but ${JSON.stringify(decisions(file))}`,
      () => decisions(file).length >= count,
      cluster,
    );
  }

  test("a decided value stays decided when every process is killed and restarted", { tags: ["long"] }, async () => {
    const file = join(folder, "run.jsonl");
    const cluster = await ClusterUnderTest.up("--protocol", "paxos", "--nodes", "3", "--restart", "--record", file);
    await propose(adminOf(cluster, 0), "blue");
    await allDecided(cluster, file, 3);
    const before = new Map(cluster.pids);
    for (const node of NODES) cluster.kill(node);
    await until("all run again", async () => {
      const { nodes } = await cluster.status();
      return nodes.every(({ id, alive, pid }) => alive && pid !== before.get(id));
    });
    await propose(adminOf(cluster, 1), "red");
    await until("all know it", async () => (await cluster.status()).nodes.every(({ role }) => role === "decided"));
    expect(new Set(decisions(file).map(({ value }) => value))).toEqual(new Set(["blue"]));
    const journals = entriesOf(file).flatMap((entry) => (entry.kind === "start" ? [entry.journal?.length] : []));
    expect(journals.slice(0, 3)).toEqual([0, 0, 0]);
    expect(journals.slice(3).every((length) => (length ?? 0) >= 2)).toBe(true);

    cluster.signal("SIGTERM");
    await cluster.finished;
    const { stdout } = await coterie("trace", file, "--check", "--json");
    const { doubts, properties } = JSON.parse(stdout) as { doubts: unknown[]; properties: { name: string }[] };
    expect(doubts).toEqual([]);
    expect(properties.find(({ name }) => name === "agreement")).toMatchObject({ verdict: "holds" });
  });

  test("with --data the journals outlive the cluster", { tags: ["long"] }, async () => {
    const file = join(folder, "run.jsonl");
    const words = ["--protocol", "paxos", "--nodes", "3", "--data", join(folder, "kept")];
    const first = await ClusterUnderTest.up(...words);
    await propose(adminOf(first, 2), "blue");
    await until("all have decided", async () => (await first.status()).nodes.every(({ role }) => role === "decided"));
    first.signal("SIGTERM");
    await first.finished;
    const second = await ClusterUnderTest.up(...words, "--record", file);
    await propose(adminOf(second, 0), "red");
    await until("all know it", async () => (await second.status()).nodes.every(({ role }) => role === "decided"));
    expect(decisions(file).filter(({ value }) => value !== "blue")).toEqual([]);
    second.signal("SIGTERM");
    await second.finished;

    const other = await coterie("up", ...words, "--port", "0", "--name", "other", "--json");
    expect(other.code).toBe(1);
    expect(other.stderr).toMatch(/to be owned by member \d of other, got/); // The process that ends first.
  });
});

describe("`coterie node` with a journal", () => {
  let config: string;
  let file: string;
  beforeEach(async () => {
    const held = [await occupyPort(), await occupyPort()];
    for (const { release } of held) release();
    const [address, admin] = held.map(({ port }) => `127.0.0.1:${port}`);
    config = join(folder, "one.json");
    write({ address, admin }, { dataDir: "journals/{id}" });
    file = join(folder, "journals", "4", "journal");
    function write(member: object, more: object): void {
      writeFileSync(config, JSON.stringify({ cluster: "one", protocol: "paxos", members: { 4: member }, ...more }));
    }
  });

  async function started(...words: string[]): Promise<{ member: Coterie; admin: string }> {
    const member = new Coterie("node", "--config", config, "--id", "4", ...words);
    const line = await until("it listens", () => (member.stdout.includes("\n") ? member.stdout : null), member);
    return { member, admin: (JSON.parse(line) as { admin: string }).admin };
  }
  async function killed({ member }: { member: Coterie }): Promise<void> {
    member.signal("SIGKILL");
    await member.finished;
  }
  async function decided(admin: string): Promise<void> {
    await until("it has decided", async () => {
      const status = (await (await fetch(`${admin}/status`)).json()) as { role: string };
      return status.role === "decided";
    });
  }
  /** Decides a value, then crashes. */
  async function ranOnce(): Promise<void> {
    const run = await started();
    await propose(run.admin, "blue");
    await decided(run.admin);
    await killed(run);
  }

  test("needs a directory, and reports that", async () => {
    const { dataDir: _dataDir, ...without } = JSON.parse(readFileSync(config, "utf8")) as { dataDir: string };
    writeFileSync(config, JSON.stringify(without));
    expect(await coterie("node", "--config", config, "--id", "4")).toEqual({
      code: 2,
      signal: null,
      stdout: "",
      stderr:
        'coterie: expected a directory for the journal of paxos, because the journal must outlive the process: pass dataDir to host(), or set --data DIR or "dataDir" in the config file\n',
    });
    const run = await started("--data", join(folder, "elsewhere"));
    await killed(run);
    expect(readFileSync(join(folder, "elsewhere", "journal")).toString("latin1", 0, 15)).toBe("COTERIE-JOURNAL");
  });

  test("a second process cannot use the same directory", { tags: ["long"] }, async () => {
    const run = await started();
    const second = await coterie("node", "--config", config, "--id", "4");
    expect(second).toMatchObject({ code: 2, stdout: "" });
    expect(second.stderr).toBe(
      `coterie: the journal in ${join(folder, "journals", "4")} is in use by process ${run.member.pid}: a directory can have only one writer, so stop that process or use another directory\n`,
    );
    await killed(run);
    await killed(await started());
  });

  test("starts with a journal whose last write was torn, and reports the truncated part", async () => {
    await ranOnce();
    appendFileSync(file, "half a wri");
    const run = await started();
    expect(run.member.stderr).toContain(`the journal ${file} ended with an unconfirmed write: removed 10 bytes`);
    await killed(run);
  });

  test("does not start with a journal that is damaged in the middle, until it is repaired", {
    tags: ["long"],
  }, async () => {
    await ranOnce();
    await killed(await started());
    const whole = readFileSync(file);
    const broken = Buffer.from(whole);
    broken[60] = (whole[60] as number) ^ 1;
    writeFileSync(file, broken);
    const refused = await coterie("node", "--config", config, "--id", "4");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toMatch(/^coterie: the journal .*journal is damaged at byte 28: it is unreadable/);
    expect(refused.stderr).toContain("The node does not start, because it might break promises that it has recorded.");
    writeFileSync(file, whole);
    await killed(await started());
  });
});

test("a process that is killed while it writes has kept all confirmed records, in order", async () => {
  const source = (file: string) => JSON.stringify(new URL(`../../src/${file}`, import.meta.url).href);
  const directory = join(folder, "hurried");
  /** Appends numbers to the end of the journal, a few at a time, and reports each once it is durable. */
  const script = `
    const { openJournal } = await import(${source("runtime/journal/disk-journal.ts")});
    const { realPlatform: platform } = await import(${source("runtime/platform/real.ts")});
    const { natural, struct } = await import(${source("core/shape.ts")});
    const limits = { rewriteFromBytes: 20_000 };
    const options = { platform, owner: "me", log: { warn: console.error }, onFailure: (error) => { throw error; }, limits };
    const journal = await openJournal(process.argv[1], options);
    const slot = journal.slot("numbers", struct({ number: natural }));
    const { records } = slot;
    console.log("found " + records.map(({ number }) => number).join(" "));
    let last = records.at(-1)?.number ?? 0;
    const more = () => {
      for (let i = 0; i < 5; i++) slot.append({ number: ++last });
      if (last % 1_000 === 0) slot.compact([{ number: last }]);
      const confirmed = last;
      slot.whenDurable(() => console.log("confirmed " + confirmed));
      setImmediate(more);
    };
    more();`;
  let confirmed = 0;
  for (let round = 0; round < 10; round++) {
    const words = ["--import", TSX, "--input-type=module", "-e", script, directory];
    const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    const ended = new Promise((resolve) => child.on("close", resolve));
    await until("it has confirmed a few", () => said.split("confirmed").length > 3 + 2 * round);
    child.kill("SIGKILL");
    await ended;
    const [found = "", ...lines] = said.split("\n").slice(0, -1);
    const numbers = found.split(" ").slice(1).filter(Boolean).map(Number);
    expect(numbers).toEqual(numbers.map((_, i) => (numbers[0] as number) + i));
    expect(numbers.at(-1) ?? 0).toBeGreaterThanOrEqual(confirmed);
    confirmed = Number(lines.at(-1)?.split(" ")[1]);
  }
});
