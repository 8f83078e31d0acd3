/** How one setting of a name differs from another, in words for whoever asked for it. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { equal } from "../../core/plain.ts";
import { messageForm, readChannelOptions, type Setting } from "./algorithms.ts";
import { stackNamed } from "./channel-stacks.ts";

/** Its messages look otherwise there: the two must not run it together. What is not known here at all, others refuse by name. */
export function otherRelease(setting: Setting, form: number): UsageError | null {
  const own = messageForm(setting);
  if (own === 0 || own === form) return null;
  const text = `expected the messages of ${setting.algorithm} to be those of this member's release, got another release's: run one release at all members that use the ${setting.kind} "${setting.name}"`;
  return new UsageError("other-release", text);
}

export const onLog = ({ kind, name, algorithm }: Setting): string =>
  unexpected(`the algorithm of the ${kind} "${name}"`, "raft, as it is in use already", algorithm);

export function differenceOf(wanted: Setting, known: Setting): string | null {
  const what = `the ${wanted.kind} "${wanted.name}"`;
  if (wanted.kind === "channel" && !equal(wanted, known))
    return `expected the options of ${what} to be ${chosen(known)}, as they are in use already, got ${chosen(wanted)}`;
  if (wanted.algorithm !== known.algorithm)
    return unexpected(`the algorithm of ${what}`, `${known.algorithm}, as it is in use already`, wanted.algorithm);
  if (wanted.options !== known.options)
    return `expected the options of ${what} to be ${known.options}, as they are in use already, got ${wanted.options}`;
  return null;
}

/** A channel as its callers ask for it, in their words. */
function chosen({ algorithm, options }: Setting): string {
  const { order, carrier } = stackNamed(algorithm);
  return JSON.stringify({ order, reliable: carrier === "views", transport: readChannelOptions(options).transport });
}
