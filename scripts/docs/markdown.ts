/** A table in Markdown. Cells may contain Markdown; only characters that would end a cell are escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

export function code(text: string): string {
  return `\`${text}\``;
}

/** Puts content between the markers of a section. Throws when the page lacks them or has them twice. */
export function replaceSection(page: string, name: string, content: string): string {
  const begin = `<!-- generated: ${name} (npm run docs) -->`;
  const end = `<!-- end of ${name} -->`;
  const [before, inside, ...surplus] = page.split(begin);
  const after = inside?.split(end);
  if (before === undefined || after?.length !== 2 || surplus.length > 0) {
    throw new Error(`the page needs one section between "${begin}" and "${end}"`);
  }
  return `${before}${begin}\n\n${content}\n\n${end}${after[1]}`;
}
