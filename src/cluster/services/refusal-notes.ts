/** Counts and logs the messages that a member refuses or drops. Each kind is logged once. */
import type { NodeId } from "../../core/protocol.ts";
import type { Log } from "../../runtime/log.ts";
import { type Counts, count } from "../../runtime/metrics.ts";
import type { MemberEvent } from "./api.ts";
import type { Envelope } from "./envelope.ts";

export class RefusalNotes {
  readonly #log: Log;
  readonly #counts: Pick<Counts, "refused">;
  readonly #publish: (event: MemberEvent) => void;
  constructor(log: Log, counts: Pick<Counts, "refused">, publish: (event: MemberEvent) => void) {
    this.#log = log;
    this.#counts = counts;
    this.#publish = publish;
  }

  /**
   * Counts and logs a refused datagram. Only links authenticate the sending member. A datagram proves at most that some
   * member sent it.
   */
  datagram(from: NodeId, envelope: Envelope): void {
    count(this.#counts.refused, "forged");
    const what = "name" in envelope ? `${envelope.type} of "${envelope.name}"` : envelope.type;
    const text = `refused a datagram from node ${from}: expected a message for a channel that uses udp, got ${what}`;
    this.#log.once(`datagram ${from}`, text, { event: "datagram-refused", peer: from, reason: "forged" });
  }

  channel(name: string, why: string): void {
    count(this.#counts.refused, "instance");
    this.#log.once(`refused channel ${name}`, why, { event: "instance-refused", kind: "channel", name });
    this.#publish({ type: "instance-refused", kind: "channel", name, why });
  }

  undefinedMachine(machine: string, bytes: number, maxBytes: number): void {
    const text = `${bytes} bytes of commands are waiting for the state machine "${machine}" to be defined: call replicated(${JSON.stringify(machine)}, …) at this member, which stops at ${maxBytes} bytes`;
    this.#log.once(`undefined ${machine}`, text, { event: "machine-undefined", machine, bytes, maxBytes });
    this.#publish({ type: "machine-undefined", machine, bytes, maxBytes });
  }

  overflow(to: NodeId): void {
    const text = `node ${to} is unreachable and its queue is full: dropping the oldest messages`;
    this.#log.once(`resending ${to}`, text, { event: "resending-full", peer: to });
  }
}
