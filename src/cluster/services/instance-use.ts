/** Tells `names` which instances this member uses: what nobody uses is put away. */
import type { Names } from "../../protocols/index.ts";
import type { Instance } from "./instance.ts";
import { keyOf } from "./name-messages.ts";
import { hasOwnLease } from "./own-lease.ts";
import type { ServedLocks } from "./served-locks.ts";
import type { Timing } from "./timing.ts";

export class InstanceUse {
  readonly #timing: Timing;
  readonly #served: ServedLocks;
  readonly #give: (command: Names["command"]) => void;
  /** Per instance, what `names` was last told: whether it is used, and its `activity` at that time. */
  readonly #told = new WeakMap<Instance, { isUsed: boolean; activity: number }>();

  constructor(timing: Timing, served: ServedLocks, give: (command: Names["command"]) => void) {
    this.#timing = timing;
    this.#served = served;
    this.#give = give;
  }

  /** Tells names whether it is used, as it is at this moment, and whether it has been since they were told last. */
  look(instance: Instance): boolean {
    const { activity, isJoint, setting } = instance;
    const isUsed = isJoint ? !this.#mayForgetTogether(instance) : !this.#mayForget(instance);
    const told = this.#told.get(instance) ?? UNTOLD;
    const name = keyOf(setting);
    const isNews = activity !== told.activity;
    if (isNews || (isUsed && !told.isUsed)) this.#give({ type: "use", name });
    if (!isUsed && (isNews || told.isUsed)) this.#give({ type: "rest", name });
    if (isNews || isUsed !== told.isUsed) this.#told.set(instance, { isUsed, activity });
    return isUsed;
  }

  #mayForget(instance: Instance): boolean {
    if (instance.forgotten !== "alone" || !instance.isIdle) return false;
    if (hasOwnLease(instance.setting, this.#timing)) return false;
    // It has heard of a server that this member does not know of yet: opened anew, it could turn to the one before.
    return !instance.heedsEpochs || instance.epoch <= this.#served.epoch;
  }

  #mayForgetTogether({ isJoint, local, setting }: Instance): boolean {
    return isJoint && !local.isUsed && !hasOwnLease(setting, this.#timing);
  }
}

/** Names have not been told anything of it yet. */
const UNTOLD = { isUsed: false, activity: 0 };
