/** Three `coterie node` processes that serve etcd's API to clients of other projects. */
import { existsSync } from "node:fs";
import { type Coterie, until } from "../e2e/cluster-under-test.ts";
import { MembersUnderTest } from "../e2e/members-under-test.ts";
import { freePorts } from "../network/free-ports.ts";

export class EtcdMembers {
  readonly #members: MembersUnderTest;
  readonly #ports: readonly number[];

  private constructor(members: MembersUnderTest, ports: readonly number[]) {
    this.#members = members;
    this.#ports = ports;
  }

  static async start(timing: "default" | "patient" = "patient"): Promise<EtcdMembers> {
    const members = await MembersUnderTest.of(3, { timing });
    const started = new EtcdMembers(members, await freePorts(members.ids.length));
    await Promise.all(members.ids.map((id) => started.serve(id)));
    await started.leader();
    return started;
  }

  get ids(): readonly number[] {
    return this.#members.ids;
  }

  /** Starts a member and waits until it listens. */
  async serve(id: number): Promise<void> {
    const member = this.#members.serve(id, "--etcd", this.addressOf(id));
    await until(`member ${id} runs`, () => member.stdout.includes("listening"), member);
  }

  addressOf(id: number): string {
    return `127.0.0.1:${this.#ports[id - 1]}`;
  }

  get addresses(): readonly string[] {
    return this.ids.map((id) => this.addressOf(id));
  }

  /** Kills a member and waits until its process has ended. */
  async kill(id: number): Promise<void> {
    const member = this.#members.running.get(id) as Coterie;
    member.signal("SIGKILL");
    await member.finished;
  }

  /** Waits for a member that reports itself as the leader. */
  leader(): Promise<number> {
    return until("a member leads", async () => {
      const led = await Promise.all(this.ids.map(async (id) => ((await this.#isLeader(id)) ? id : null)));
      return led.find((id) => id !== null) ?? null;
    });
  }

  async #isLeader(id: number): Promise<boolean> {
    const response = await fetch(`http://${this.addressOf(id)}/v3/maintenance/status`, { method: "POST", body: "{}" })
      .then((found) => found.json() as Promise<{ leader?: string; header?: { member_id: string } }>)
      .catch(() => null);
    return response?.leader !== undefined && response.leader === response.header?.member_id;
  }

  remove(): void {
    this.#members.remove();
  }
}

/** Debian's Python, which finds the packages that Debian installs. */
export const PYTHON = "/usr/bin/python3";

/** @throws Error that names the packages to install */
export function requireInstalled(file: string, packages: string): void {
  if (!existsSync(file)) throw new Error(`not installed: apt-get install ${packages}, which .ci/run does`);
}
