/** Explains why a certificate is refused, and how to fix it. */

/** Error codes and messages from OpenSSL and Node. */
const flaws: readonly (readonly [words: RegExp, sentence: string])[] = [
  [
    /CERT_HAS_EXPIRED|certificate has expired/,
    "that member's certificate has expired: replace the file (coterie cert ID --renew makes a new one); the running member will reload it",
  ],
  [
    /CERT_NOT_YET_VALID|certificate is not yet valid/,
    "that member's certificate is not valid yet: correct the clocks on the two machines",
  ],
  [
    /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT|SELF_SIGNED_CERT|CERT_SIGNATURE_FAILURE|unable to verify the first certificate|unable to get (local )?issuer certificate|self-signed certificate|certificate signature failure/,
    "that member's certificate is not signed by a known authority: set ca to the certificate of the authority that signed it",
  ],
  [
    /altnames/,
    "that member's certificate does not include the name used here: create a certificate with this name, or use a name that it includes",
  ],
];

/**
 * @param why the code or message of an error
 * @returns the code or message, preceded by an explanation and a remedy if these are known
 */
export function inPlainWords(why: string): string {
  const found = flaws.find(([words]) => words.test(why));
  return found === undefined ? why : `${found[1]} (${why})`;
}
