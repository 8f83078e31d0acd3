/** Counts and logs, once each, the messages that a member refuses or drops. */
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

  /** Only a link authenticates the sending member: a datagram shows at most that some member sent it. */
  datagram(from: NodeId, envelope: Envelope): void {
    count(this.#counts.refused, "forged");
    const what = "name" in envelope ? `${envelope.type} of "${envelope.name}"` : envelope.type;
    const text = `refused a datagram from node ${from}: expected messages of channels that use udp, got ${what}`;
    this.#log.once(`datagram ${from}`, text, { event: "datagram-refused", peer: from, reason: "forged" });
  }

  channel(name: string, why: string): void {
    count(this.#counts.refused, "instance");
    this.#log.once(`refused channel ${name}`, why, { event: "instance-refused", kind: "channel", name });
    this.#publish({ type: "instance-refused", kind: "channel", name, why });
  }

  undefinedMachine(machine: string, bytes: number, maxBytes: number): void {
    const text = `commands wait here for the state machine "${machine}", ${bytes} bytes in all: call replicated(${JSON.stringify(machine)}, …) at this member, which stops at ${maxBytes} bytes`;
    this.#log.once(`undefined ${machine}`, text, { event: "machine-undefined", machine, bytes, maxBytes });
    this.#publish({ type: "machine-undefined", machine, bytes, maxBytes });
  }

  overflow(to: NodeId): void {
    const text = `the queue for node ${to}, which is unreachable, is full: dropping the oldest messages`;
    this.#log.once(`resending ${to}`, text, { event: "resending-full", peer: to });
  }
}
