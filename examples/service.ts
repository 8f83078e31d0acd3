/**
 * A service of three replicas on plain `node:http`: one leader runs the scheduler, a lock protects a job, and all share
 * settings. Run it three times: `npx tsx examples/service.ts 1`, and again with 2 and 3. Try `curl localhost:7221/readyz`,
 * `curl -X PUT localhost:7221/settings/color -d blue` and `curl -X POST localhost:7222/job`. Then stop the replica that
 * schedules: another takes over.
 */
import { createServer, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "coterie";

const id = Number(process.argv[2] ?? 1);
const http: Record<number, string> = { 1: "127.0.0.1:7221", 2: "127.0.0.1:7222", 3: "127.0.0.1:7223" };
const port = Number(http[id]?.split(":")[1]);
const member = await join({
  id,
  members: { 1: "127.0.0.1:7211", 2: "127.0.0.1:7212", 3: "127.0.0.1:7213" },
  dataDir: "data-{id}",
});
const settings = member.map<string>("settings");
const latest = new Map<string, string>();
const stop = new AbortController();

async function schedule(): Promise<void> {
  while (!stop.signal.aborted) {
    try {
      await member.election("scheduler").lead(
        async ({ signal, token }) => {
          while (!signal.aborted) {
            console.log(`member ${id} runs the schedule under token ${token}`);
            await sleep(200, undefined, { signal });
          }
        },
        { signal: stop.signal },
      );
    } catch (error) {
      if (member.signal.aborted) throw error; // Otherwise leadership was lost: campaign again.
    }
  }
}

async function follow(): Promise<void> {
  const { entries, revision } = await settings.range({ timeoutMs: Number.POSITIVE_INFINITY });
  for (const { key, value } of entries) latest.set(key, value);
  for await (const change of settings.watch({ after: revision, signal: stop.signal })) {
    if (change.type === "put") latest.set(change.key, change.value);
    else latest.delete(change.key);
  }
}

async function answer(request: IncomingMessage): Promise<[status: number, body: unknown]> {
  const [, first, key = ""] = (request.url ?? "").split("/");
  if (first === "readyz") {
    const { hasQuorum, shared } = member.status();
    const ready = hasQuorum && shared?.leader !== null && !stop.signal.aborted;
    return [ready ? 200 : 503, { ready }];
  }
  if (first === "settings" && request.method === "PUT") {
    let value = "";
    for await (const part of request) value += String(part);
    await settings.put(key, value, { timeoutMs: 5_000 });
    return [200, { key, value }];
  }
  if (first === "settings") return [200, Object.fromEntries(latest)];
  if (first !== "job") return [404, {}];
  const token = await member.mutex("job").use((grant) => grant.token, { timeoutMs: 5_000 });
  return [200, { token }];
}

const server = createServer((request, response) => {
  void answer(request)
    .catch((error: unknown): [number, unknown] => [503, { error: String(error) }])
    .then(([status, body]) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body)),
    );
});

async function shutDown(): Promise<void> {
  stop.abort(); // First the scheduler stops,
  server.close(); // then pending requests are answered,
  await working;
  await member.leave(); // and then locks are released.
}

const working = Promise.allSettled([schedule(), follow()]);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void shutDown());
server.listen(port, "127.0.0.1");
