/**
 * Runs members of a cluster and clients that execute commands under `coterie lock` and `coterie elect`, and reads the
 * records that these commands write.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { protocolNamed } from "../../src/protocols/index.ts";
import { makeKeys, needsKeys } from "../../src/runtime/member-keys.ts";
import { freePorts } from "../network/free-ports.ts";
import { Coterie, until } from "./cluster-under-test.ts";

const WITNESS = fileURLToPath(new URL("./witness.js", import.meta.url));

/** One line in the record of a witness. */
export interface Sighting {
  /** `second`: a different process had the port. `told`: the witness received a signal to end. */
  readonly what: "begin" | "alone" | "second" | "beat" | "told";
  readonly member: number;
  readonly token: number;
  readonly pid: number;
  /** Time on the machine's monotonic clock, in milliseconds. */
  readonly startedAt: number;
  readonly at: number;
}

export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

export class MembersUnderTest {
  readonly folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
  readonly config = join(this.folder, "coterie.json");
  readonly ids: readonly number[];
  /** The latest run of each member. */
  readonly running = new Map<number, Coterie>();
  readonly #log = join(this.folder, "sightings");
  readonly #addresses = new Map<number, string>();
  readonly #admin = new Map<number, string>();
  readonly #clients = new Map<number, string>();
  /** The port for the witnesses, or for other shared uses. */
  readonly port: number;
  readonly #fields: object;

  private constructor(count: number, [port = 0, ...ports]: readonly number[], fields: object) {
    this.ids = Array.from({ length: count }, (_, index) => index + 1);
    this.port = port;
    const members = this.ids.map((id) => {
      this.#admin.set(id, `127.0.0.1:${ports[count + id - 1]}`);
      this.#clients.set(id, `127.0.0.1:${ports[2 * count + id - 1]}`);
      this.#addresses.set(id, `127.0.0.1:${ports[id - 1]}`);
      return [id, { address: this.#addresses.get(id), admin: this.#admin.get(id) }];
    });
    this.#fields = { cluster: "test", dataDir: "journal-{id}", members: Object.fromEntries(members), ...fields };
    this.rewrite({});
    writeFileSync(this.#log, "");
  }

  /** Writes the config file with these fields changed, and creates keys if the protocol signs. */
  rewrite(changes: { readonly protocol?: string; readonly [field: string]: unknown }): void {
    const { protocol } = changes;
    const keys = { own: join(this.folder, "journal-{id}", "signing.key"), all: join(this.folder, "{id}.pub") };
    const signs = protocol !== undefined && needsKeys(protocolNamed(protocol).node());
    if (signs) makeKeys(keys, this.ids);
    writeFileSync(this.config, JSON.stringify({ ...this.#fields, ...(signs ? { keys } : {}), ...changes }));
  }

  /** @param fields fields of the config file in addition to the default fields */
  static async of(count: number, fields: object = {}): Promise<MembersUnderTest> {
    return new MembersUnderTest(count, await freePorts(3 * count + 1), fields);
  }

  /** Prepares a cluster whose members lose locks only if a test causes it, no matter how busy the machine is. */
  static patient(count: number): Promise<MembersUnderTest> {
    return MembersUnderTest.of(count, { timing: "patient" });
  }

  /**
   * Starts a client of member `id`. `words` are the arguments before `--`, and the witness or a different command
   * follows it.
   */
  start(id: number, words: string, command = this.witness(id)): Coterie {
    const [verb = "", ...rest] = words.split(" ");
    return new Coterie(verb, ...rest, "--endpoints", this.endpointOf(id), "--", ...command);
  }

  endpointOf(id: number): string {
    return `http://${this.#clients.get(id)}`;
  }

  /** Starts member `id` with `coterie node`, which runs no other command. */
  serve(id: number, ...words: string[]): Coterie {
    const member = new Coterie("node", "--id", String(id), "--config", this.config, ...words);
    this.running.set(id, member);
    return member;
  }

  /** Starts members that serve clients. Resolves when they are running. */
  serveClients(ids = this.ids, ...words: string[]): Promise<void> {
    return this.#listening(ids.map((id) => this.serve(id, "--clients", this.#clients.get(id) ?? "", ...words)));
  }

  /** Starts members that do not serve clients. Resolves when they are running. */
  serveAll(): Promise<void> {
    return this.#listening(this.ids.map((id) => this.serve(id)));
  }

  async #listening(all: readonly Coterie[]): Promise<void> {
    for (const member of all) await until("a member runs", () => member.stdout.includes("listening"), member);
  }

  adminOf(id: number): string {
    return `http://${this.#admin.get(id)}`;
  }

  /** Returns the options for a member that calls `join()` itself. */
  joinOptions(id: number): object {
    return {
      id,
      cluster: "test",
      members: Object.fromEntries(this.#addresses),
      dataDir: join(this.folder, `journal-${id}`),
      admin: this.#admin.get(id),
      faultInjector: true,
    };
  }

  /** Returns the command of a witness. With `ms`, it ends by itself after that time. */
  witness(id: number, ms?: number): string[] {
    return [
      process.execPath,
      WITNESS,
      String(this.port),
      this.#log,
      String(id),
      ...(ms === undefined ? [] : [`${ms}`]),
    ];
  }

  get sightings(): Sighting[] {
    const lines = readFileSync(this.#log, "utf8").split("\n");
    return lines.slice(0, -1).map((line) => JSON.parse(line) as Sighting);
  }

  /** Waits for the next command that has begun with a token higher than this. */
  successor(of = -1): Promise<Sighting> {
    return until(
      () => `a command begins with a token higher than ${of}, but ${this.errors}`,
      () => this.sightings.find(({ what, token }) => what === "begin" && token > of),
    );
  }

  /** The command with the highest token so far. */
  get latest(): Sighting {
    const begun = this.sightings.filter(({ what }) => what === "begin");
    return begun.reduce((a, b) => (b.token > a.token ? b : a));
  }

  get errors(): string {
    return [...this.running].map(([id, { stderr }]) => `${id} said ${JSON.stringify(stderr)}`).join(", ");
  }

  /** Cuts all links between these groups. Without arguments, heals all links. */
  async partition(...groups: readonly (readonly number[])[]): Promise<void> {
    const cutTo = (id: number): number[] => groups.filter((group) => !group.includes(id)).flat();
    await Promise.all(this.ids.map((id) => this.#faults(id, groups.length === 0 ? [] : cutTo(id))));
  }

  async #faults(id: number, cutTo: readonly number[]): Promise<void> {
    const body = JSON.stringify({ cutTo });
    const headers = { "content-type": "application/json" };
    await until(
      () => `member ${id}, which may just have been started, answers, but ${this.errors}`,
      async () => {
        const response = await fetch(`http://${this.#admin.get(id)}/faults`, { method: "PUT", headers, body }).catch(
          () => null,
        );
        return response?.ok === true;
      },
    );
  }

  remove(): void {
    // A witness may still write its last line.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

/**
 * Returns violations in the records of witnesses, as sentences. Only one command may run at a time, and tokens must
 * grow.
 */
export function disorder(sightings: readonly Sighting[]): string[] {
  const wrong = sightings
    .filter(({ what }) => what === "second")
    .map(({ member, token }) => `the command of member ${member}, token ${token}, found another one running`);
  const last = new Map<number, number>(); // The last sighting of each command.
  for (const { pid, at } of sightings) last.set(pid, at);
  const begun = sightings.filter(({ what }) => what === "begin").sort((a, b) => a.startedAt - b.startedAt);
  for (const [index, next] of begun.entries()) {
    const before = begun[index - 1];
    if (before === undefined) continue;
    if (next.token <= before.token)
      wrong.push(`token ${next.token} of member ${next.member} came after ${before.token}`);
    const overlap = (last.get(before.pid) ?? 0) - next.startedAt;
    if (overlap > 0)
      wrong.push(`tokens ${before.token} and ${next.token} ran together for ${overlap.toFixed(1)} ms or more`);
  }
  return wrong;
}
