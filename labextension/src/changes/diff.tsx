import { MergeView, unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import {
  jupyterTheme,
  type IEditorLanguageRegistry
} from '@jupyterlab/codemirror';
import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IComparison } from './changes.js';

/** How two texts are shown: beside each other, or as one. */
export type DiffLayout = 'split' | 'inline';

const SHARED = {
  gutter: true,
  collapseUnchanged: { margin: 3, minSize: 6 },
  // A difference that would take longer is told less exactly.
  diffConfig: { scanLimit: 2000, timeout: 500 }
};

/** Two texts compared: line numbers, the colours of their language, changed words marked. */
export const DiffView = React.memo(function DiffView(props: {
  comparison: IComparison;
  layout: DiffLayout;
  languages: IEditorLanguageRegistry | null;
  trans: TranslationBundle;
}) {
  const { comparison, layout, languages, trans } = props;
  const host = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    let isWanted = true;
    let view: { destroy(): void } | undefined;
    void findSupport(languages, comparison).then(support => {
      if (isWanted && host.current) {
        const extensions = [support, ...common(trans)];
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
    // There is nothing to compare: all of it is new, or all is gone.
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

/** Both texts without the end of their last line, unless that is what differs. */
function withoutLastEnd({ old, new: now }: IComparison): [string, string] {
  const isAlike = [old, now].every(each => each === '' || each.endsWith('\n'));
  return isAlike
    ? [old.replace(/\n$/, ''), now.replace(/\n$/, '')]
    : [old, now];
}

function common(trans: TranslationBundle): Extension[] {
  return [
    jupyterTheme,
    lineNumbers(),
    EditorView.lineWrapping,
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({ tabindex: '0' }),
    EditorState.phrases.of({
      '$ unchanged lines': trans.__('$ unchanged lines')
    })
  ];
}

/** What colours a language; nothing, where it is not known or cannot be loaded. */
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
