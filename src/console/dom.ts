/**
 * Making and finding elements. Text becomes text nodes, here and everywhere: what logs say is never markup.
 */

type Child = Node | string;
type Attributes = Readonly<Record<string, string>>;

/** Attribute names are ours; values may be anything, as long as the attribute is no address and no code. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

/** The element of that id in the page, which must be of that kind. */
export function found<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const there = document.getElementById(id);
  if (!(there instanceof kind)) throw new Error(`the page has no ${kind.name} called ${id}`);
  return there;
}

const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Characters that show nothing, or turn the text around them, as escapes such as \u202e. */
export function visibleText(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`);
}
