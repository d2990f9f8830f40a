import { MergeView, unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import {
  jupyterTheme,
  type IEditorLanguageRegistry
} from '@jupyterlab/codemirror';
import { PathExt } from '@jupyterlab/coreutils';
import * as React from 'react';

import { trans } from '../translation.js';
import type { IComparison } from './changes.js';

/** Layout of a comparison: side by side, or unified. */
export type DiffLayout = 'split' | 'inline';

const SHARED = {
  gutter: true,
  collapseUnchanged: { margin: 3, minSize: 6 },
  // A comparison that would take longer is less exact.
  diffConfig: { scanLimit: 2000, timeout: 500 }
};

/** Comparison of two texts with line numbers, syntax colours and marked words. */
export const DiffView = React.memo(function DiffView(props: {
  comparison: IComparison;
  layout: DiffLayout;
  languages: IEditorLanguageRegistry | null;
}) {
  const { comparison, layout, languages } = props;
  const host = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    let isWanted = true;
    let view: { destroy(): void } | undefined;
    void findSupport(languages, comparison).then(support => {
      if (isWanted && host.current) {
        const extensions = [support, ...common(comparison)];
        view = mount(host.current, comparison, layout, extensions);
      }
    });
    return () => {
      isWanted = false;
      view?.destroy();
    };
  }, [comparison.old, comparison.new, comparison.language, layout]);
  return <div className={`oh-DiffView oh-mod-${layout}`} ref={host} />;
});

function mount(
  parent: HTMLElement,
  comparison: IComparison,
  layout: DiffLayout,
  extensions: Extension[]
): { destroy(): void } {
  const [old, now] = withoutLastEnd(comparison);
  if (old === '' || now === '') {
    // All of it is new or deleted.
    parent.classList.add(old === '' ? 'oh-mod-created' : 'oh-mod-deleted');
    return new EditorView({ doc: old || now, extensions, parent });
  }
  parent.classList.remove('oh-mod-created', 'oh-mod-deleted');
  if (layout === 'split') {
    const a = { doc: old, extensions };
    return new MergeView({ a, b: { doc: now, extensions }, parent, ...SHARED });
  }
  const original = { original: old, mergeControls: false, ...SHARED };
  extensions = [...extensions, unifiedMergeView(original)];
  return new EditorView({ doc: now, extensions, parent });
}

/** Drop the final newline of both texts, unless only one has it. */
function withoutLastEnd({ old, new: now }: IComparison): [string, string] {
  const isAlike = [old, now].every(each => each === '' || each.endsWith('\n'));
  return isAlike
    ? [old.replace(/\n$/, ''), now.replace(/\n$/, '')]
    : [old, now];
}

function common({ cell, language }: IComparison): Extension[] {
  const label =
    cell === null
      ? trans.__('Changes of %1', PathExt.basename(language))
      : trans.__('Changes of cell %1', cell);
  return [
    jupyterTheme,
    lineNumbers(),
    EditorView.lineWrapping,
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({ tabindex: '0', 'aria-label': label }),
    EditorState.phrases.of({
      '$ unchanged lines': trans.__('$ unchanged lines')
    })
  ];
}

/** Return the syntax colouring of a language, if it is known and loads. */
async function findSupport(
  languages: IEditorLanguageRegistry | null,
  { cell, language }: IComparison
): Promise<Extension> {
  const spec =
    cell === null
      ? languages?.findByFileName(PathExt.basename(language))
      : languages?.findBest(language);
  const loaded = spec && (await languages?.getLanguage(spec).catch(() => null));
  return loaded?.support ?? [];
}
