/** Checks that members of `coterie node`, without a supervisor, find each other through their config file. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { freePorts } from "../network/free-ports.ts";
import { Coterie, coterie, endAll, until } from "./cluster-under-test.ts";

afterEach(endAll);

const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Listening {
  readonly event: "listening";
  readonly id: number;
  readonly pid: number;
  readonly address: string;
  readonly admin: string;
}

async function configFile(): Promise<string> {
  const [a, b, adminA, adminB] = await freePorts(4);
  const members = {
    0: { address: `127.0.0.1:${a}`, admin: `127.0.0.1:${adminA}` },
    7: { address: `127.0.0.1:${b}`, admin: `127.0.0.1:${adminB}` },
  };
  const file = join(folder, "cluster.json");
  writeFileSync(file, JSON.stringify({ cluster: "two", protocol: "bully", members }));
  return file;
}

async function listening(member: Coterie): Promise<Listening> {
  return until("the member listens", () => (member.stdout.includes("\n") ? JSON.parse(member.stdout) : null), member);
}

test("two members started by hand agree on a leader, and `coterie status --config` shows them", async () => {
  const file = await configFile();
  const low = new Coterie("node", "--config", file, "--id", "0");
  const high = new Coterie("node", "--config", file, "--id", "7", "--log-json");
  expect(await listening(low)).toMatchObject({ event: "listening", id: 0, pid: low.pid });
  expect(await listening(high)).toMatchObject({ event: "listening", id: 7, pid: high.pid });

  const status = () => coterie("status", "--config", file, "--json");
  const settled = await until("both follow 7", async () => {
    const { code, stdout } = await status();
    const found = code === 0 ? JSON.parse(stdout) : null;
    return found?.nodes.every((node: { leader: number | null }) => node.leader === 7) ? found : null;
  });
  expect(settled).toMatchObject({
    cluster: "two",
    protocol: "bully",
    nodes: [
      { id: 0, alive: true },
      { id: 7, alive: true },
    ],
  });

  high.signal("SIGKILL");
  await until("0 leads itself", async () => {
    const { nodes } = JSON.parse((await status()).stdout);
    return nodes[0].leader === 0 && !nodes[1].alive && nodes[1].process === "unknown";
  });

  low.signal("SIGTERM");
  expect(await low.finished).toMatchObject({ code: 0, signal: null });
});

test("`coterie status --config` names unreachable members, and gives a hint", async () => {
  const [a, b, admin] = await freePorts(3);
  const file = join(folder, "hidden.json");
  const write = (members: object): void =>
    writeFileSync(file, JSON.stringify({ cluster: "h", protocol: "bully", members }));
  write({ 0: `127.0.0.1:${a}`, 1: `127.0.0.1:${b}` });
  const hint = "the config has no admin address for";
  const what = "add one to query each member\n";
  expect(await coterie("status", "--config", file)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^0 +- +no admin address/m),
    stderr: `coterie: no member answers: ${hint} members 0 and 1: ${what}`,
  });

  write({ 0: `127.0.0.1:${a}`, 1: { address: `127.0.0.1:${b}`, admin: `127.0.0.1:${admin}` } });
  await listening(new Coterie("node", "--config", file, "--id", "1"));
  const { stdout, stderr } = await until("member 1 answers in time", async () => {
    const status = await coterie("status", "--config", file, "--json");
    return status.code === 0 ? status : null;
  });
  expect(stderr).toBe(`coterie: ${hint} member 0: ${what}`);
  expect(JSON.parse(stdout).nodes).toMatchObject([{ admin: null, process: "unknown" }, { alive: true }]);
});

test("a member ends on Ctrl-C, and with --supervised when its standard input ends", async () => {
  const file = await configFile();
  const alone = new Coterie("node", "--config", file, "--id", "0");
  // Tests start processes without standard input, so it has already ended.
  const supervised = new Coterie("node", "--config", file, "--id", "7", "--supervised");
  expect((await supervised.finished).code).toBe(0);
  await listening(alone);
  alone.signal("SIGINT");
  expect((await alone.finished).code).toBe(0);
});
