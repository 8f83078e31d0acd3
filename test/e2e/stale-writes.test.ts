/**
 * A resource checks tokens, and leaders do not check whether they still lead. The resource must accept no stale write
 * while processes are killed, paused and cut off. COTERIE_SOAK=200 makes it long; COTERIE_SEED repeats a run.
 *
 * @module-tag long
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, expect, test } from "vitest";
import { random } from "../../src/core/random.ts";
import { CLI, endAll, ScriptUnderTest, until } from "./cluster-under-test.ts";
import { MembersUnderTest, monotonicMs } from "./members-under-test.ts";

const rounds = Number(process.env.COTERIE_SOAK ?? 9);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const INDEX = pathToFileURL(join(dirname(CLI), "..", "index.js")).href;

let members: MembersUnderTest;
afterEach(async () => {
  await endAll();
  members?.remove();
});

interface Attempt {
  readonly token: number;
  readonly member: number;
  readonly accepted: boolean;
}

/** The first write with a token that the resource had not seen before. */
interface News extends Omit<Attempt, "accepted"> {
  readonly at: number;
}

test(`no stale write of careless leaders is accepted, through ${rounds} kills, pauses and partitions`, async () => {
  console.log(`stale writes: COTERIE_SOAK=${rounds} COTERIE_SEED=${seed}`);
  const draw = random(seed);
  members = await MembersUnderTest.of(3);
  const log = join(members.folder, "attempts");
  const resource = new ScriptUnderTest(script("./resource.js"), String(members.port), log, INDEX);
  const news: News[] = [];
  void (async () => {
    for await (const line of resource.lines()) news.push(line as News);
  })();
  await until("the resource listens", () => news.length > 0, resource);
  const writers = new Map(members.ids.map((id) => [id, writer(id)]));

  const newer = (than: number): Promise<News> =>
    until(
      () => `a leader writes with a token above ${than}, but ${[...writers.values()].map(({ stderr }) => stderr)}`,
      () => news.find(({ token }) => token > than),
    );
  await newer(-1);
  const deeds = { kill: 0, pause: 0, partition: 0 };
  const tookMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const leader = news.reduce((a, b) => (b.token > a.token ? b : a));
    const victim = writers.get(leader.member) as ScriptUnderTest;
    const deed = draw.pick(["kill", "pause", "partition"] as const);
    const from = monotonicMs();
    if (deed === "partition") await members.partition([leader.member], others(leader.member));
    else victim.signal(deed === "kill" ? "SIGKILL" : "SIGSTOP");
    tookMs.push((await newer(leader.token)).at - from);
    deeds[deed] += 1;
    if (deed === "partition") await members.partition();
    else if (deed === "pause") victim.signal("SIGCONT");
    else {
      await victim.finished;
      writers.set(leader.member, writer(leader.member));
    }
  }
  const attempts = (): string[] => readFileSync(log, "utf8").split("\n").slice(0, -1);
  if (deeds.pause > 0) await until("a resumed process continues to write", () => judge(attempts()).stale > 0, resource);
  resource.signal("SIGTERM");
  await resource.finished;
  const verdict = judge(attempts());
  tookMs.sort((a, b) => a - b);
  console.log(`stale writes: ${deeds.kill} kills, ${deeds.pause} pauses, ${deeds.partition} partitions`);
  console.log(`stale writes: another wrote after ${Math.round(tookMs[rounds >> 1] ?? 0)} ms in the middle`);
  console.log(`stale writes: ${verdict.attempts} attempts, ${verdict.stale} of them stale`);
  console.log(`stale writes: ${verdict.staleAccepted} stale ones accepted, ${verdict.tokens} tokens`);
  expect(verdict.staleAccepted).toBe(0);
  expect(verdict.shared).toEqual([]);
  expect(verdict.refused).toBe(verdict.stale);
});

function others(of: number): number[] {
  return members.ids.filter((id) => id !== of);
}

function writer(id: number): ScriptUnderTest {
  if (!existsSync(CLI)) throw new Error(`expected the built command line at ${CLI}: run \`npm run build\``);
  return new ScriptUnderTest(
    script("./careless-writer.js"),
    JSON.stringify(members.joinOptions(id)),
    String(members.port),
    INDEX,
  );
}

/** Recomputes the decisions from the log alone, without trusting the resource. */
function judge(lines: readonly string[]) {
  const attempts = lines.map((line) => JSON.parse(line) as Attempt);
  const owners = new Map<number, Set<number>>();
  let highest = -1;
  let stale = 0;
  let staleAccepted = 0;
  for (const { token, member, accepted } of attempts) {
    owners.set(token, (owners.get(token) ?? new Set()).add(member));
    if (token < highest) {
      stale += 1;
      if (accepted) staleAccepted += 1;
    }
    highest = Math.max(highest, token);
  }
  return {
    attempts: attempts.length,
    stale,
    staleAccepted,
    refused: attempts.filter(({ accepted }) => !accepted).length,
    tokens: owners.size,
    /** Tokens that more than one member had. */
    shared: [...owners].filter(([, members]) => members.size > 1).map(([token]) => token),
  };
}
