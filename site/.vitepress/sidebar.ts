/** The reading order of the docs. Each page is listed once; its title is its first heading. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const docs = fileURLToPath(new URL("../../docs", import.meta.url));

interface Group {
  readonly text: string;
  /** Paths below docs/, without `.md`. */
  readonly pages: readonly string[];
  /** Whether the group is closed until the reader opens it. */
  readonly isFolded?: boolean;
}

const inFolder = (folder: string, names: string): string[] => names.split(" ").map((name) => `${folder}/${name}`);

export const sections: Readonly<Record<string, readonly Group[]>> = {
  guide: [
    { text: "Start", pages: inFolder("guide", "index getting-started choose why changes faq") },
    {
      text: "Primitives",
      pages: inFolder("guide", "mutex election semaphore rwlock barrier map counter queue transactions state-machines"),
    },
    { text: "What holds", pages: inFolder("guide", "guarantees fencing") },
    {
      text: "Messages",
      pages: inFolder("guide", "channels channels-sending channels-log channels-replicas ip-multicast"),
    },
    {
      text: "Clients and HTTP",
      pages: inFolder("guide", "command-line clients http locks-over-http etcd-api etcd-clients"),
    },
    { text: "In your program", pages: inFolder("guide", "frameworks testing") },
    {
      text: "Engines",
      pages: ["guide/engines", ...inFolder("guide/engines", "etcd nats postgresql redis zookeeper")],
      isFolded: true,
    },
    {
      text: "Recipes",
      pages: inFolder(
        "guide/recipes",
        "cron sharded-workers configuration cache-invalidation leader-socket rate-limit rolling-deploy blue-green",
      ),
    },
    { text: "Migrate", pages: inFolder("guide/migrate", "redlock advisory-locks etcd-curator") },
  ],
  operate: [
    { text: "Set up", pages: inFolder("operate", "index cluster deploy security timing") },
    { text: "Run", pages: inFolder("operate", "monitoring membership upgrade journals recovery troubleshooting") },
    { text: "Performance", pages: ["operate/performance"] },
  ],
  reference: [
    {
      text: "Reference",
      pages: inFolder(
        "reference",
        "index commands configuration errors log-events metrics limits admin-api file-formats engines",
      ),
    },
  ],
  learn: [
    {
      text: "Laboratory",
      pages: inFolder("learn", "index laboratory laboratory-acting laboratory-shown tours embed teaching"),
    },
    {
      text: "Algorithms",
      pages: inFolder("learn", "algorithms comparison agreement multicast consensus flp two-phases"),
    },
    {
      text: "Election",
      isFolded: true,
      pages: [
        "learn/families/election",
        ...inFolder(
          "learn/protocols",
          "bully ring chang-roberts epoch-bully epoch-bully/options super-peer-dht super-peer-tokens",
        ),
      ],
    },
    {
      text: "Mutual exclusion",
      isFolded: true,
      pages: [
        "learn/families/mutex",
        ...inFolder(
          "learn/protocols",
          "central-server token-ring ricart-agrawala maekawa maekawa-sanders suzuki-kasami raymond elected-server epoch-token-ring coordination-service",
        ),
      ],
    },
    {
      text: "Multicast",
      isFolded: true,
      pages: [
        "learn/families/multicast",
        ...inFolder(
          "learn/protocols",
          "basic-multicast reliable-multicast ip-multicast fifo causal isis fifo-total causal-total view-synchrony log-multicast",
        ),
      ],
    },
    {
      text: "Consensus",
      isFolded: true,
      pages: [
        "learn/families/consensus",
        ...inFolder(
          "learn/protocols",
          "flood-set byzantine-generals interactive-consistency lockstep two-phase-commit replicated-commit paxos multi-paxos fast-paxos cheap-paxos generalized-paxos raft raft/members-and-reads pbft pbft/running",
        ),
      ],
    },
    { text: "Membership", isFolded: true, pages: ["learn/families/membership", "learn/protocols/heartbeat"] },
    { text: "Glossary", pages: inFolder("learn", "glossary glossary-coterie") },
  ],
  verify: [
    { text: "Find faults", pages: inFolder("verify", "index checking timed strategies campaigns") },
    { text: "Run", pages: inFolder("verify", "simulating scenarios scenarios-from-code traces") },
    { text: "Your own protocol", pages: inFolder("verify", "own-protocol hosting") },
    { text: "Evidence", pages: inFolder("verify", "assumptions seeded-bugs") },
  ],
};

/** Returns the text of a page's first heading, without code marks. @throws Error if there is no such page or heading */
export function titleOf(page: string): string {
  const file = join(docs, `${page}.md`);
  if (!existsSync(file)) throw new Error(`expected the page ${file}, which site/.vitepress/sidebar.ts lists`);
  const title = /^# (.+)$/m.exec(readFileSync(file, "utf8"))?.[1];
  if (title === undefined) throw new Error(`expected a first heading in ${file}`);
  return title.replaceAll("`", "");
}

/** Returns the entry points that TypeDoc has documented, such as `coterie/check`. */
export function apiPages(): readonly string[] {
  const folder = fileURLToPath(new URL("../build/docs/reference/api", import.meta.url));
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"));
  return files
    .map((file) => file.replace(/\.md$/, "").split(sep).join("/"))
    .filter((name) => name !== "index")
    .sort();
}
