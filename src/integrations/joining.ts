/** A service that may shut down before it has joined: then the join is aborted, and a member that it makes yet leaves. */
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { EngineJoinOptions, EngineMember } from "../cluster/services/external-engine.ts";
import { isObject } from "../cluster/services/known-options.ts";
import { Coordination } from "./coordination.ts";

export class Joining {
  readonly joined: Promise<Coordination<Member | EngineMember>>;
  readonly #aborting = new AbortController();
  #coordination: Coordination<Member | EngineMember> | null = null;

  constructor(options: JoinOptions | EngineJoinOptions) {
    this.joined = Coordination.join(abortedBy(this.#aborting.signal, options)).then((coordination) => {
      this.#coordination = coordination;
      return coordination;
    });
  }

  /** As `Coordination.stop` does, where it has joined: a member whose signal is aborted leaves at once. */
  stop(): void {
    if (this.#coordination !== null) this.#coordination.stop();
    else this.#aborting.abort(new CoordinationError("member-left", "never-sent", "this process is shutting down"));
  }

  async close(): Promise<void> {
    this.stop();
    const coordination = await this.joined.catch(() => null);
    await coordination?.close();
  }
}

/** By its own signal as well. What cannot be is left to `join()` to refuse. */
function abortedBy<O extends JoinOptions | EngineJoinOptions>(aborting: AbortSignal, options: O): O {
  if (!isObject(options)) return options;
  const { signal = aborting } = options;
  return { ...options, signal: signal instanceof AbortSignal ? AbortSignal.any([signal, aborting]) : signal };
}
