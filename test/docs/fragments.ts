/**
 * Examples of the docs that cannot run alone, because they are parts of a program, or need a network, a framework or a
 * server. Each is compiled against the types of the package, in the context that the page assumes.
 */

export interface Fragment {
  readonly page: string;
  /** The beginning of the block. */
  readonly begins: string;
  /** The code before it: imports, and the context that the page assumes. */
  readonly given?: string;
  /** Turns the block into a program. By default it is unchanged. */
  readonly whole?: (block: string) => string;
}

const MEMBER = `import type { Member } from "coterie";
declare const member: Member;
`;
const JOINING = `import { join } from "coterie";
declare const id: number;
declare const members: Record<number, string>;
declare const dataDir: string;
`;
const CHARGE = "declare function charge(invoice: { token: number }): Promise<void>;\n";

/** Pages whose `js` examples other tests run, from the packed tarball. */
export const runElsewhere: Readonly<Record<string, string>> = {
  "docs/guide/engines/etcd.md": "test/engines/real/docs-examples.ts",
  "docs/guide/engines/nats.md": "test/engines/real/docs-examples.ts",
  "docs/guide/engines/postgresql.md": "test/engines/real/docs-examples.ts",
  "docs/guide/engines/redis.md": "test/engines/real/docs-examples.ts",
  "docs/guide/engines/zookeeper.md": "test/engines/real/docs-examples.ts",
  "docs/guide/getting-started.md": "test/package/first-cluster.test.ts",
};

/** Splits the code at the line that marks omitted code. */
const halves = (block: string): [before: string, after: string] => {
  const [before = "", ...after] = block.split(/^\/\/ …$/m);
  return [before, after.join("\n")];
};

export const fragments: readonly Fragment[] = [
  {
    page: "docs/guide/channels.md",
    begins: "for await (const { view, members, state }",
    given: `import type { Channel } from "coterie";\ndeclare const room: Channel<string>;\n`,
  },
  { page: "docs/guide/clients.md", begins: 'import { connect } from "coterie"' },
  { page: "docs/guide/etcd-api.md", begins: "const member = await join({", given: 'import { join } from "coterie";\n' },
  {
    page: "docs/guide/engines.md",
    begins: 'import { join } from "coterie"',
    given: "declare function charge(invoice: { token: number; signal: AbortSignal }): Promise<void>;\n",
  },
  {
    page: "docs/guide/migrate/advisory-locks.md",
    begins: "await connection.query(",
    given: `${MEMBER}${CHARGE}declare const connection: { query(text: string, values: unknown[]): Promise<unknown> };\n`,
  },
  {
    page: "docs/guide/migrate/etcd-curator.md",
    begins: "await etcd.lock(",
    given: `${MEMBER}${CHARGE}declare const etcd: { lock(name: string): { do<T>(work: () => Promise<T>): Promise<T> } };\n`,
  },
  {
    page: "docs/guide/migrate/redlock.md",
    begins: "await redlock.using(",
    given: `${MEMBER}${CHARGE}declare const redlock: {
  using<T>(resources: string[], duration: number, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
};
`,
  },
  {
    page: "docs/guide/ip-multicast.md",
    begins: "const member = await join({",
    given: `${JOINING}declare const tls: "off";\n`,
    // join() rejects a missing key, so pass an empty one.
    whole: (block) => block.replace("process.env.MULTICAST_KEY", 'process.env.MULTICAST_KEY ?? ""'),
  },
  {
    page: "docs/index.md",
    begins: 'import { join } from "coterie"',
    given: `declare const id: number;
declare const members: Record<number, string>;
declare function writeReport(lead: { token: number; signal: AbortSignal }): Promise<void>;
`,
  },
  { page: "docs/operate/cluster.md", begins: 'import { join } from "coterie"' },
  { page: "docs/operate/deploy.md", begins: 'import { discover, join } from "coterie"' },
  { page: "docs/operate/membership.md", begins: "await join({", given: `import { join } from "coterie";\n` },
  {
    page: "docs/operate/monitoring.md",
    begins: 'import { trace } from "@opentelemetry/api"',
    given: `declare const id: number;
declare const members: Record<number, string>;
declare const dataDir: string;
declare function charge(invoice: { token: number }): Promise<void>;
`,
  },
  {
    page: "docs/operate/monitoring.md",
    begins: "admin: {",
    given: `import type { JoinOptions } from "coterie";\n`,
    whole: (block) => `export const options: Pick<JoinOptions, "admin"> = {\n${block}};\n`,
  },
  { page: "docs/guide/mutex.md", begins: "await using lock", given: MEMBER },
  {
    page: "docs/guide/election.md",
    begins: 'await member.election("scheduler")',
    given: `${MEMBER}import { setTimeout as sleep } from "node:timers/promises";
declare function runDueJobs(job: { token: number }): Promise<void>;
`,
  },
  {
    page: "docs/guide/election.md",
    begins: "for await (const { leader, token }",
    given: `${MEMBER}declare const signal: AbortSignal;\n`,
  },
  { page: "docs/guide/election.md", begins: "const election = member.election", given: MEMBER },
  {
    page: "docs/guide/testing.md",
    begins: "const world = simulate({",
    given: `import type { Member } from "coterie";
import { simulate } from "coterie/testing";
import { expect } from "vitest";
declare const seed: number;
declare const archive: { reports: string[] };
declare function writeReports(member: Member, into: object, sleep: (ms: number) => Promise<unknown>): Promise<void>;
`,
  },
  { page: "docs/operate/timing.md", begins: "const member = await join(", given: JOINING },
  {
    page: "docs/verify/own-protocol.md",
    begins: "type Counter = {",
    given: `import type { Protocol, RequestId } from "coterie/core";\n`,
    whole(block) {
      const [type, handler] = halves(block);
      const whole = type.replace(/\};\s*$/, '  timer: never;\n  event: { type: "none" };\n};\n');
      return `${whole}export const receive: Pick<Protocol<Counter>["receive"], "added"> = {\n${handler}};\n`;
    },
  },
  {
    page: "docs/verify/own-protocol.md",
    begins: "const order = signed(",
    given: `import { isGenuine, oneOf, sign, signed } from "coterie/core";\n`,
    whole(block) {
      const [shape, ...rest] = block.split(/^\/\/ …$/m);
      return `${shape}
type Order = Parameters<typeof isGenuine<"attack" | "retreat">>[2];
type Ctx = { send(to: number, message: { type: "order"; order: Order }): void } & Parameters<typeof sign>[0];
export function handle(ctx: Ctx, given: Order): void {
${rest.join("\n")}}
`;
    },
  },
  {
    page: "docs/verify/own-protocol.md",
    begins: "type Votes = {",
    given: `import { boolean, entriesIn, type PerNode, perNode } from "coterie/core";\n`,
    whole(block) {
      const [shapes, handler] = halves(block);
      return `${shapes}export const all = shapes;\nexport function handle({ votes }: Votes): number[] {\n${handler}return against;\n}\n`;
    },
  },
];
