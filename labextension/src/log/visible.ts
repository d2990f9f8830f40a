/** Characters that nobody sees, or that change how others are seen, and blanks that look like a space. */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;

/** Return an agent's text with an escape in place of each character that cannot be seen. */
export function visible(text: string): string {
  return text.replace(HIDDEN, each =>
    each === '\n' || each === '\t' ? each : escaped(each)
  );
}

function escaped(character: string): string {
  const digits = (character.codePointAt(0) ?? 0).toString(16);
  const [mark, length] =
    digits.length <= 2 ? ['x', 2] : digits.length <= 4 ? ['u', 4] : ['U', 8];
  return `\\${mark}${digits.padStart(length, '0')}`;
}
