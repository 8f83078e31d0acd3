/**
 * The caller's own state machines. States, commands and results have the machine's types in the program, and are JSON
 * in the log.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type {
  MachineDefinition,
  MachineDefinitions,
} from "../../../protocols/service/coordination-service/machines.ts";
import { replicaDefaults } from "../../../protocols/service/coordination-service/replica.ts";
import { jsonFault, stateFault } from "../json-fault.ts";
import { isObject, requireOptions, work } from "../known-options.ts";
import { callRules } from "./calls.ts";
import { limits } from "./limits.ts";
import type { Service } from "./service.ts";
import type { CallOptions, Replicated, StateMachine } from "./state-api.ts";
import { parsedValue, textOf, withinBounds } from "./value-text.ts";

// biome-ignore lint/suspicious/noExplicitAny: only the caller knows the types
export type AnyMachine = StateMachine<any, any, any>;

/**
 * @throws UsageError if the value is not a state machine. Other libraries require a `snapshot` function, so the error
 *   explains that this one does not accept it
 */
export function requireMachine(machine: AnyMachine): void {
  const stray = isObject(machine) ? ["snapshot", "restore"].find((name) => Object.hasOwn(machine, name)) : undefined;
  if (stray !== undefined) {
    const refusal = unexpected("the options of replicated()", "among init, apply", stray);
    const why = "the state is plain data and is saved directly, without such a function";
    throw new UsageError("bad-option", `${refusal}: ${why}`);
  }
  requireOptions("replicated", machine, { init: work, apply: work });
}

/**
 * Returns the definition for the replicas. The initial state is computed and validated now, regardless of when the
 * replicas start.
 * @throws UsageError
 */
function definitionOf(name: string, machine: AnyMachine): MachineDefinition {
  const first = firstStateOf(name, machine);
  return {
    init: () => JSON.parse(first) as unknown,
    apply(state, command) {
      const given = machine.apply(state, parsedValue(command));
      requirePair(given);
      const [next, result] = given;
      if (result === undefined) return [next, ""];
      const fault = jsonFault(result, "the result");
      if (fault !== null) throw new UsageError("bad-value", fault);
      return [next, JSON.stringify(result)];
    },
    ask: (state) => JSON.stringify(state),
    fault: (state, checked) => stateFault(state, checked, "the state"),
  };
}

/**
 * Requires that `apply()` has returned a pair. If it returned only a state, and that state was a list, its first two
 * items would be mistaken for the pair.
 */
function requirePair(given: unknown): void {
  if (Array.isArray(given) && given.length === 2) return;
  const list = Array.isArray(given) ? `an array of ${given.length}` : typeof given;
  const got = given instanceof Promise ? "a promise" : list;
  throw new UsageError("bad-value", `expected apply() to return [state, result], got ${got}`);
}

/** Returns the initial state as JSON. */
function firstStateOf(name: string, machine: AnyMachine): string {
  const call = `replicated(${JSON.stringify(name)})`;
  const state = givenBy(machine, call);
  const fault = stateFault(state, undefined, "init()");
  if (fault !== null) throw new UsageError("bad-value", `${call}: ${fault}`);
  return withinBounds(JSON.stringify(state), `init() of ${call}`, replicaDefaults.maxMachineBytes);
}

function givenBy(machine: AnyMachine, call: string): unknown {
  try {
    return machine.init();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError("bad-option", `${call}: expected init() to return a state, but it throws: ${why}`, {
      cause: error,
    });
  }
}

/** The machines that this process has defined. The replicas look them up by name. */
export class Machines {
  /** The definitions. The object has no prototype, so that `__proto__` is an ordinary name. */
  readonly definitions = Object.create(null) as MachineDefinitions;
  readonly #given = new Map<string, AnyMachine>();

  /** @throws UsageError if the name already refers to a different machine */
  define(name: string, machine: AnyMachine): void {
    const known = this.#given.get(name);
    if (known === machine) return;
    if (known !== undefined)
      throw new UsageError(
        "other-setting",
        `expected the state machine "${name}" to have the same definition as before, got another object: keep the result of replicated(), or the definition`,
      );
    this.definitions[name] = definitionOf(name, machine);
    this.#given.set(name, machine);
  }
}

/** The object that `replicated()` returns. */
export class LocalReplicated<S, C, R> implements Replicated<S, C, R> {
  readonly #service: Service;
  constructor(
    readonly name: string,
    service: Service,
  ) {
    this.#service = service;
  }

  async execute(command: C, options: CallOptions = {}): Promise<R> {
    requireOptions("execute", options, callRules);
    const text = textOf(command, "the command", limits.valueBytes);
    const call = { ...options, what: `the command to "${this.name}"`, changes: true };
    return this.#service.call(call, async (isWanted) => {
      const { result } = await this.#service.submit({ type: "execute", machine: this.name, command: text }, isWanted);
      return (result.type === "executed" && result.result !== "" ? JSON.parse(result.result) : undefined) as R;
    });
  }

  async read(options: CallOptions = {}): Promise<S> {
    requireOptions("read", options, callRules);
    const call = { ...options, what: `the read of "${this.name}"`, changes: false };
    return this.#service.call(call, async () => {
      const { answer } = await this.#service.query({ type: "ask", machine: this.name, question: "" });
      return JSON.parse(answer.answer) as S;
    });
  }
}
