/** Checks `coterie lock`, `elect` and `watch` as clients that are not members: how long they wait, and the result. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { join, type Member } from "../../src/index.ts";
import { freePorts } from "../network/free-ports.ts";
import { Coterie, coterie, endAll, until } from "./cluster-under-test.ts";

afterEach(endAll);

describe("without a member that answers", () => {
  let server: Server;
  let url = "";
  const sockets = new Set<Socket>();

  beforeAll(async () => {
    server = createServer((socket) => void sockets.add(socket.on("error", () => {})));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  });
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  test.each([
    ["lock", "the lock x", "SIGINT", 130],
    ["elect", "leadership of x", "SIGTERM", 143],
  ] as const)("%s waits forever, reports the reason, and ends on a signal", async (command, what, signal, code) => {
    const run = new Coterie(command, "x", "--endpoints", url, "--", "true");
    const line = `coterie: waiting for ${what}: no member that knows who the leader is answers at ${url}; a majority must be running\n`;
    await until("it reports that it waits", () => run.stderr === line, run);
    run.signal(signal);
    expect(await run.finished).toEqual({ code, signal: null, stdout: "", stderr: line });
  });

  test("lock waits no longer than its timeout", async () => {
    const { code, stderr } = await coterie("lock", "x", "--endpoints", url, "--timeout", "300ms", "--", "true");
    expect(code).toBe(75);
    expect(stderr).toContain(url);
  });

  test("watch ends on a signal, too", async () => {
    sockets.clear();
    const run = new Coterie("watch", "stock", "--endpoints", url, "--timeout", "1h");
    await until("it connects", () => sockets.size > 0, run);
    run.signal("SIGINT");
    expect(await run.finished).toEqual({ code: 0, signal: null, stdout: "", stderr: "" });
  });
});

/** Returns the number of the member's client connections. */
async function clientsAt({ clients }: Member): Promise<number> {
  const response = await fetch(`${clients}/v1/status`, { headers: { authorization: "Bearer read" } });
  return ((await response.json()) as { clients: number }).clients;
}

describe("at a member", () => {
  const folder = mkdtempSync(path(tmpdir(), "coterie-endpoints-"));
  const tokenOf = (role: string): string => path(folder, `${role}.token`);
  let member: Member;
  const as = (role: string): readonly string[] => [
    "--endpoints",
    member.clients as string,
    "--token-file",
    tokenOf(role),
  ];

  beforeAll(async () => {
    const roles = path(folder, "roles.json");
    const tokens = ["read", "write"].map((role) => {
      writeFileSync(tokenOf(role), role);
      return { name: role, role, sha256: createHash("sha256").update(role).digest("hex") };
    });
    writeFileSync(roles, JSON.stringify({ tokens }));
    writeFileSync(tokenOf("unknown"), "unknown");
    const [own, clients] = await freePorts(2);
    member = await join({
      id: 1,
      members: { 1: `127.0.0.1:${own}` },
      dataDir: path(folder, "data"),
      clients: { listen: `127.0.0.1:${clients}`, roles },
    });
  });
  afterAll(async () => {
    await member.leave();
    rmSync(folder, { recursive: true, force: true });
  });

  const print = ["--", "sh", "-c", 'echo "$COTERIE_NAME"; exit 9'];

  test.each(["lock", "elect"])("%s runs its command, and passes on the exit code", async (command) => {
    const { code, stdout, stderr } = await coterie(command, "x", ...as("write"), ...print);
    expect({ code, stdout, stderr }).toEqual({ code: 9, stdout: "x\n", stderr: "" });
  });

  test("lock waits for a held lock until the timeout or a signal", async () => {
    const held = await member.mutex("y").acquire();
    expect(await coterie("lock", "y", ...as("write"), "--timeout", "5s", ...print)).toMatchObject({
      code: 75,
      stderr: expect.stringContaining("was not acquired within 5000 ms") as string,
    });
    await until("it has left", async () => (await clientsAt(member)) === 0);
    const run = new Coterie("lock", "y", ...as("write"), ...print);
    await until("the next one is there", async () => (await clientsAt(member)) === 1, run);
    run.signal("SIGINT");
    expect(await run.finished).toMatchObject({ code: 130, stdout: "", stderr: "" });
    await held.release();
  });

  test.each([
    ["lock", "read", "a change requires the role write, but this client has the role read"],
    ["elect", "read", "a change requires the role write, but this client has the role read"],
    ["put", "read", "a change requires the role write, but this client has the role read"],
    ["lock", "unknown", "expected a valid token or certificate"],
    ["elect", "unknown", "expected a valid token or certificate"],
  ])("%s with the token of %s is not allowed, which is exit code 2", async (command, role, why) => {
    const rest = command === "put" ? ["key", "1"] : print;
    const { code, stdout, stderr } = await coterie(command, "x", ...as(role), ...rest);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(why);
    expect(stderr).toContain("--token-file");
    expect(stderr).not.toContain("connect()");
  });
});
