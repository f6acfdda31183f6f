import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

/** Rows beyond the visible ones that are there already when one scrolls. */
const spare = 16;

/** A part of many rows of equal height. `end` is the first one that is not shown. */
export interface Range {
  readonly first: number;
  readonly end: number;
}

/** The rows to show when the first of `count` rows begins `top` pixels below the upper edge of the window. */
export function rangeOf(top: number, windowHeight: number, rowHeight: number, count: number): Range {
  const from = Math.floor(-top / rowHeight) - spare;
  const first = Math.min(Math.max(0, from), Math.max(0, count - 1));
  const end = Math.max(first + spare, Math.ceil((windowHeight - top) / rowHeight) + spare);
  return { first, end: Math.min(count, end) };
}

/** Follows the scrolling of the page: which rows of the table body in `ref` are to be drawn. */
export function useVisibleRows(count: number, rowHeight: number) {
  const ref = useRef<HTMLTableSectionElement>(null);
  const [range, setRange] = useState<Range>({ first: 0, end: Math.min(count, 40) });
  const wanted = useRef<number | undefined>(undefined);
  const look = () => {
    const top = ref.current?.getBoundingClientRect().top ?? 0;
    const now = rangeOf(top, innerHeight, rowHeight, count);
    setRange((old) => (old.first === now.first && old.end === now.end ? old : now));
  };
  useEffect(() => {
    look();
    addEventListener('scroll', look, { passive: true });
    addEventListener('resize', look);
    // What is above the table may grow and shrink.
    const observer = new ResizeObserver(look);
    observer.observe(document.body);
    return () => {
      observer.disconnect();
      removeEventListener('scroll', look);
      removeEventListener('resize', look);
    };
  }, [count, rowHeight]);
  useLayoutEffect(() => {
    const link = ref.current?.querySelector<HTMLElement>(`[data-row="${wanted.current}"] a`);
    if (!link) return;
    wanted.current = undefined;
    link.focus({ preventScroll: true });
  });
  /** Moves the focus to a row, and scrolls there if it cannot be seen. */
  const focusRow = (row: number) => {
    if (!ref.current || row < 0 || row >= count) return;
    wanted.current = row;
    const top = ref.current.getBoundingClientRect().top + row * rowHeight;
    const margin = 3 * rowHeight;
    if (top < margin) scrollBy(0, top - margin);
    else if (top + rowHeight > innerHeight - rowHeight) scrollBy(0, top + 2 * rowHeight - innerHeight);
    look();
    // The row may be drawn already.
    setRange((old) => ({ ...old }));
  };
  return { ref, range, focusRow };
}
