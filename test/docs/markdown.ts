/** Targets of links and images in the text of a page. */
export function linksOf(text: string): string[] {
  const prose = withoutBlocks(text).replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)].map(([, target]) => target ?? '');
}

/** The anchors that GitHub gives to the headings of a page. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of withoutBlocks(text).matchAll(/^#{1,6} +(.+?)\s*$/gm)) {
    const base = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = base;
    for (let i = 1; anchors.has(anchor); i++) anchor = `${base}-${i}`;
    anchors.add(anchor);
  }
  return anchors;
}

function withoutBlocks(text: string): string {
  return text.replaceAll(/^(```|~~~)[\s\S]*?^\1\s*$/gm, '');
}

/** The text under a heading of the second level. Throws when there is no such heading. */
export function section(text: string, heading: string): string {
  const [, after] = text.split(`\n## ${heading}\n`);
  if (after === undefined) throw new Error(`no section "${heading}"`);
  return after.split('\n## ')[0] ?? '';
}

/** The first cell of every row of every table, headings left out. */
export function firstCells(text: string): string[] {
  const tables = text
    .split(/\n(?!\|)/)
    .map((block) => block.split('\n').filter((line) => line.startsWith('|')));
  return tables.flatMap((rows) =>
    rows.slice(2).map((row) => row.split(' | ')[0]?.replace(/^\| ?/, '') ?? ''),
  );
}
