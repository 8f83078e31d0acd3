/**
 * Measures a cluster of three members, each in its own process, as its state grows: writes, pauses while snapshots are
 * taken, memory and disk space per key, the restart of a member, and a new member that catches up under load.
 *
 *     npx coterie bench scale --keys 1000,100000
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeSignalsEnd, commandLine, progress } from "./command-line.ts";
import { printTable } from "./results.ts";
import type { Calls, MemberOptions } from "./scale/member.ts";
import { eventually, freePorts, sharedNowMs, Workers } from "./workers.ts";

const { values, whole, wholes } = commandLine(
  "scale",
  {
    keys: {
      such: "1000,100000",
      default: "1000,100000,1000000",
      help: "numbers of keys of 1 KiB (default: 1000,100000,1000000)",
    },
    "in-flight": { such: "64", default: "256", help: "how many writes are in flight (default: 256)" },
    json: { help: "one object for each number of keys, as a list" },
  },
  { note: "A million keys take about 10 minutes, 8 GiB of memory and 8 GiB of disk space." },
);
const counts = wholes("keys", values.keys, 1, 10_000_000);
const inFlight = whole("in-flight", values["in-flight"], 1, 10_000);

const FOUNDERS = [1, 2, 3] as const;
const NEWCOMER = 4;
const KIB = 1_024;
const MIB = KIB * KIB;

class Cluster extends Workers<Calls> {
  readonly addresses: Readonly<Record<number, string>>;

  constructor(ports: readonly number[]) {
    super("scale", "scale/member");
    this.addresses = Object.fromEntries([...FOUNDERS, NEWCOMER].map((id, at) => [id, `127.0.0.1:${ports[at]}`]));
  }

  startMember(id: number): void {
    const { [NEWCOMER]: own, ...founders } = this.addresses;
    const members = id === NEWCOMER ? this.addresses : founders;
    const options: MemberOptions = { id, members, dataDir: this.dataDir(id), existing: id === NEWCOMER };
    this.start(id, options);
  }

  dataDir(id: number): string {
    return join(this.folder, String(id));
  }

  leader(): Promise<number> {
    return eventually("a leader", async () => {
      for (const id of FOUNDERS) if (await this.call(id, "isLeader")) return id;
      return null;
    });
  }

  /** Returns the peak memory of a member's process, in bytes. */
  peakBytes(id: number): number {
    const status = readFileSync(`/proc/${this.children.get(String(id))?.pid}/status`, "utf8");
    return KIB * Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
  }
}

/** Returns the size of the files in a folder, apart for snapshots and for the journal. */
function diskBytes(folder: string): { readonly journal: number; readonly snapshots: number } {
  const sizes = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => {
    const file = statSync(join(folder, name));
    return { isChunk: /chunk-\d+$/.test(name), bytes: file.isFile() ? file.size : 0 };
  });
  const sum = (isChunk: boolean): number =>
    sizes.reduce((all, file) => all + (file.isChunk === isChunk ? file.bytes : 0), 0);
  return { journal: sum(false), snapshots: sum(true) };
}

async function measure(count: number) {
  const cluster = new Cluster(await freePorts(FOUNDERS.length + 1));
  const about = (what: string): void => progress(`${count} keys: ${what}`);
  for (const id of FOUNDERS) cluster.startMember(id);
  const leader = await cluster.leader();
  const follower = FOUNDERS.find((id) => id !== leader) as number;
  await cluster.call(leader, "answers");
  const emptyBytes = cluster.residentBytes();
  about("writing");
  const fill = await cluster.call(leader, "fill", 0, count, inFlight);
  const bytesPerKey = (cluster.residentBytes() - emptyBytes) / FOUNDERS.length / count;
  about("overwriting");
  const overwrite = await cluster.call(leader, "overwrite", count, inFlight, 5_000);
  const disk = diskBytes(cluster.dataDir(follower));

  about("restarting a member");
  cluster.signal(String(follower), "SIGKILL");
  await cluster.ended(String(follower));
  const killedAt = sharedNowMs();
  cluster.startMember(follower);
  const restartS = ((await cluster.call(follower, "answers")) - killedAt) / 1_000;

  about("adding a member under load");
  const addedAt = sharedNowMs();
  await cluster.call(leader, "add", NEWCOMER, cluster.addresses[NEWCOMER] as string);
  cluster.startMember(NEWCOMER);
  const load = cluster.call(leader, "overwrite", count, 16, 20_000);
  const settledAt = await cluster.call(leader, "settled");
  const catchUp = await load;
  const figures = {
    keys: count,
    "puts/s": fill.perSecond,
    "p99, ms": fill.p99,
    "longest stall, ms": Math.max(fill.longestStallMs, overwrite.longestStallMs),
    "overwrites/s": overwrite.perSecond,
    "overwrite p99, ms": overwrite.p99,
    "memory per key, bytes": bytesPerKey,
    "journal, MiB": disk.journal / MIB,
    "snapshots, MiB": disk.snapshots / MIB,
    "restart, s": restartS,
    "new member, s": (settledAt - addedAt) / 1_000,
    "its peak memory, MiB": cluster.peakBytes(NEWCOMER) / MIB,
    "longest stall meanwhile, ms": catchUp.longestStallMs,
  };
  cluster.end();
  return figures;
}

beforeSignalsEnd(() => Workers.endAll());
const rows: Awaited<ReturnType<typeof measure>>[] = [];
for (const count of counts) rows.push(await measure(count));
progress("");
if (values.json) console.log(JSON.stringify(rows));
else {
  const names = Object.keys(rows[0] ?? {});
  const shown = (figure: number): string => (figure >= 100 ? figure.toFixed(0) : figure.toFixed(2));
  printTable(names.map((name) => [name, ...rows.map((row) => shown((row as Record<string, number>)[name] as number))]));
}
