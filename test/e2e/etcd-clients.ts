/**
 * Runs clients of etcd's Go library in a separate process. They use a mutex and an election, and report the holders.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { buildGo } from "../../bench/cluster/etcd.ts";
import { until } from "./cluster-under-test.ts";

const SOURCE = fileURLToPath(new URL("./etcd-clients/main.go", import.meta.url));
/** A holder may have entered before the progress request and be counted after it, so one acquisition is not enough. */
const PROGRESS = 3;

export interface Account {
  /** How often the mutex and the election were acquired. */
  readonly mutex: number;
  readonly election: number;
  readonly sessions: number;
  /** Sessions that ended by themselves. */
  readonly expired: number;
  /** Calls without an answer, whose outcome is unknown. */
  readonly failed: number;
  /** Holders that entered or continued too late. */
  readonly refused: number;
  /** Violations, one sentence each. */
  readonly wrong: readonly string[];
}

export class EtcdClients {
  #latest: Account | null = null;
  #stderr = "";
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;

  /** Builds the program and starts it. */
  static async start(folder: string, endpoints: readonly string[]): Promise<EtcdClients> {
    const program = join(folder, "etcd-clients");
    await buildGo(SOURCE, program);
    return new EtcdClients(program, endpoints);
  }

  private constructor(program: string, endpoints: readonly string[]) {
    this.#child = spawn(program, ["-endpoints", endpoints.join(",")], { stdio: "pipe" });
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.#latest = JSON.parse(line) as Account;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    this.#ended = new Promise((resolve) => this.#child.once("close", resolve));
  }

  get account(): Account {
    return this.#latest ?? { mutex: 0, election: 0, sessions: 0, expired: 0, failed: 0, refused: 0, wrong: [] };
  }

  /** Resolves after both have been acquired several more times. */
  async progress(): Promise<void> {
    const { mutex, election } = this.account;
    await until(
      () => `mutex and election were acquired after ${mutex} and ${election} times, but ${this.standing}`,
      () => this.account.mutex >= mutex + PROGRESS && this.account.election >= election + PROGRESS,
    );
  }

  /** @returns the counts, after all pending calls have ended */
  async end(): Promise<Account> {
    this.#child.stdin?.end();
    const code = await this.#ended;
    if (code !== 0) throw new Error(`the clients exited with ${code}: ${this.standing}`);
    return this.account;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  get standing(): string {
    return `the account is ${JSON.stringify(this.account)}, stderr: ${this.#stderr}`;
  }
}
