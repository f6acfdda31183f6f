import type { NftBatch } from '../../kernel/nft/batch.ts';
import type { NftClient } from '../../kernel/nft/client.ts';
import { describeElement } from '../../kernel/nft/describe-element.ts';
import { describeRule } from '../../kernel/nft/describe-rule.ts';
import type { Chain, Element, Rule } from '../../kernel/nft/objects.ts';
import { describeOperation, type Operation } from '../../kernel/nft/operation.ts';
import type { Family } from '../../model/ip.ts';
import { isSetName, setDefinition, setRef, tableOf } from './layout.ts';

/** A transaction as text, close to what `nft` takes: one line for each rule and element. */
export function transactionText(batch: NftBatch, family: Family): string {
  return batch.operations.map((operation) => operationText(operation, family)).join('\n');
}

/** The table as the kernel holds it now; of large sets, the first elements. */
export async function tableText(client: NftClient, family: Family, elementsPerSet: number): Promise<string> {
  const table = tableOf(family);
  if (!(await client.getTable(table))) return `there is no table ${table.family} ${table.name}`;
  const lines = [`table ${table.family} ${table.name} {`];
  for (const { name } of await client.listSets(table)) {
    lines.push(`\tset ${name} {`, ...(await elementLines(client, family, name, elementsPerSet)), '\t}');
  }
  const rules = await client.listRules(table);
  for (const chain of await client.listChains(table)) lines.push(...chainLines(chain, rules));
  return [...lines, '}'].join('\n');
}

function operationText(operation: Operation, family: Family): string {
  const text = describeOperation(operation);
  const { kind, object, elements } = operation;
  if (kind === 'rule' && 'exprs' in object) return `${text} ${describeRule(object)}`;
  if (!elements || !('name' in object)) return text;
  const verb = `${operation.verb} element ${tableOf(family).family} ${tableOf(family).name}`;
  return elements.map((element) => `${verb} ${elementText(family, object.name, element)}`).join('\n');
}

/** Elements that another program added may have any form, and sets of others are unknown. */
function elementText(family: Family, set: string, element: Element): string {
  if (isSetName(set)) return describeElement(setDefinition(family, set), element);
  return `${set} 0x${Buffer.from(element.key).toString('hex')}`;
}

async function elementLines(
  client: NftClient,
  family: Family,
  set: string,
  atMost: number,
): Promise<string[]> {
  const lines: string[] = [];
  let count = 0;
  const ref = isSetName(set) ? setRef(family, set) : { table: tableOf(family), name: set };
  await client.listElements(ref, (elements, restarted) => {
    if (restarted) count = lines.length = 0;
    count += elements.length;
    const wanted = elements.slice(0, Math.max(0, atMost - lines.length));
    lines.push(...wanted.map((element) => `\t\t${elementText(family, set, element)}`));
  });
  return count > lines.length ? [...lines, `\t\t… and ${count - lines.length} more`] : lines;
}

function chainLines({ name, base }: Chain, rules: readonly Rule[]): string[] {
  const hook = base ? [`\t\ttype ${base.type} hook ${base.hook} priority ${base.priority}`] : [];
  const own = rules.filter(({ chain }) => chain.name === name).map((rule) => `\t\t${describeRule(rule)}`);
  return [`\tchain ${name} {`, ...hook, ...own, '\t}'];
}
