/**
 * The same service as examples/service.ts, with Fastify. Install Coterie (docs/guide/getting-started.md), run
 * `npm install fastify`, and start it three times, with 1, 2 and 3.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Coordination, coterie } from "coterie/fastify";
import Fastify from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    coterie: Coordination;
  }
}

const id = Number(process.argv[2] ?? 1);
const http: Record<number, string> = { 1: "127.0.0.1:7241", 2: "127.0.0.1:7242", 3: "127.0.0.1:7243" };
const port = Number(http[id]?.split(":")[1]);
const app = Fastify();
await app.register(coterie, {
  join: {
    id,
    members: { 1: "127.0.0.1:7231", 2: "127.0.0.1:7232", 3: "127.0.0.1:7233" },
    dataDir: "data-{id}",
  },
}); // This also serves GET /readyz.
const { member, signal } = app.coterie;
const settings = member.map<string>("settings");
const latest = new Map<string, string>();

app.get("/settings", () => Object.fromEntries(latest));
app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
app.put<{ Params: { key: string }; Body: string }>("/settings/:key", async ({ params: { key }, body }) => {
  await settings.put(key, body, { timeoutMs: 5_000 });
  return { key, value: body };
});
app.post("/job", () => member.mutex("job").use(({ token }) => ({ token }), { timeoutMs: 5_000 }));

async function follow(): Promise<void> {
  const { entries, revision } = await settings.range({ timeoutMs: Number.POSITIVE_INFINITY });
  for (const { key, value } of entries) latest.set(key, value);
  for await (const change of settings.watch({ after: revision, signal })) {
    if (change.type === "put") latest.set(change.key, change.value);
    else latest.delete(change.key);
  }
}

void app.coterie.lead("scheduler", async ({ signal, token }) => {
  while (!signal.aborted) {
    console.log(`member ${id} runs the schedule under token ${token}`);
    await sleep(200, undefined, { signal });
  }
});
follow().catch((error: unknown) => {
  if (!signal.aborted) throw error;
});
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => void app.close());
await app.listen({ port, host: "127.0.0.1" });
