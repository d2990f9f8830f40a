"""Classes of popular libraries: how to make, change and look at an object of each.

The libraries and classes are those of the list that the authors of Kishu published, as far as they
install without a service, a download or a GPU; the code is ours. Each change is in place.
"""

from __future__ import annotations

from typing import NamedTuple


class LibraryClass(NamedTuple):
    """A class, and Python code around an object ``x`` of it.

    Attributes:
        library: Module to import.
        name: Name of the class or of what makes its objects.
        make: Assigns ``x``.
        change: Changes it.
        look: Expression whose ``repr`` tells what is in ``x``.
    """

    library: str
    name: str
    make: str
    change: str
    look: str


_SKLEARN = (
    "import numpy as np\n"
    "X = np.random.default_rng(1).random((40, 4)); y = (X[:, 0] > .5).astype(int); Z = X[::-1]\n"
)


def _estimator(module: str, name: str, arguments: str = "", fit: str = "y") -> LibraryClass:
    """Return an estimator that is fitted again to other data."""
    target = f", {fit}" if fit else ""
    return LibraryClass(
        "sklearn",
        f"{module}.{name}",
        f"{_SKLEARN}from sklearn.{module} import {name}\nx = {name}({arguments}).fit(X{target})",
        f"x.fit(Z{target}); x.added = 1",
        "sorted((k, repr(v)) for k, v in vars(x).items())",
    )


_AXES = "from matplotlib.figure import Figure\nfigure = Figure(); axes = figure.add_subplot()\n"
_FIGURE = "x.to_json()"

CLASSES = [
    LibraryClass("numpy", "ndarray", "import numpy as np; x = np.arange(6)", "x[3] = 10", "x"),
    LibraryClass(
        "numpy",
        "ma.MaskedArray",
        "import numpy as np; x = np.ma.array([1, 2, 3], mask=[0, 1, 0])",
        "x[0] = 9; x.mask[2] = True",
        "(x.data.tolist(), x.mask.tolist())",
    ),
    LibraryClass(
        "numpy",
        "random.RandomState",
        "import numpy as np; x = np.random.RandomState(3)",
        "x.rand(5)",
        "str(x.get_state())",
    ),
    LibraryClass("pandas", "Series", "import pandas as pd; x = pd.Series([1, 2])", "x[1] = 0", "x"),
    LibraryClass(
        "pandas",
        "DataFrame",
        "import pandas as pd; x = pd.DataFrame({'a': [1, 2], 'b': ['p', None]})",
        "x.at[0, 'b'] = 'q'; x['c'] = 3; x.loc[2] = [7, 'r', 8]",
        "x",
    ),
    LibraryClass(
        "pandas",
        "Categorical",
        "import pandas as pd; x = pd.Categorical(['a', 'b', 'a'])",
        "x[0] = 'b'",
        "x",
    ),
    LibraryClass(
        "polars",
        "DataFrame",
        "import polars as pl; x = pl.DataFrame({'a': [1, 2]})",
        "x[0, 'a'] = 9; x.insert_column(0, pl.Series('b', [3, 4]))",
        "x",
    ),
    LibraryClass("polars", "Series", "import polars as pl; x = pl.Series([1, 2])", "x[0] = 5", "x"),
    LibraryClass(
        "polars",
        "LazyFrame",
        "import polars as pl; x = pl.DataFrame({'a': [1, 2]}).lazy()",
        "x = x.filter(pl.col('a') > 1)",
        "x.collect()",
    ),
    LibraryClass(
        "pyarrow",
        "Table",
        "import pyarrow as pa; x = pa.table({'a': [1, 2]})",
        "x = x.append_column('b', pa.array([3, 4]))",
        "x.to_pydict()",
    ),
    LibraryClass(
        "xarray",
        "Dataset",
        "import xarray as xr; x = xr.Dataset({'a': ('t', [1, 2])}, attrs={'k': 1})",
        "x['a'][0] = 9; x['b'] = x['a'] * 2; x.attrs['k'] = 2",
        "(x.to_dict())",
    ),
    LibraryClass(
        "xarray",
        "DataArray",
        "import xarray as xr; x = xr.DataArray([1, 2], dims='t')",
        "x[0] = 9; x.name = 'n'; x.attrs['k'] = 2",
        "x.to_dict()",
    ),
    *(
        LibraryClass("scipy", f"sparse.{name}", _make, "x.data[0] = 100", "x.toarray().tolist()")
        for name, _make in [
            (kind, f"from scipy import sparse; x = sparse.{kind}([[1, 0, 2], [0, 4, 1]])")
            for kind in ("coo_array", "csr_array", "csc_matrix")
        ]
    ),
    LibraryClass(
        "scipy",
        "sparse.lil_array",
        "from scipy import sparse; x = sparse.lil_array([[1, 0], [0, 4]])",
        "x[0, 1] = 7",
        "x.toarray().tolist()",
    ),
    LibraryClass(
        "scipy",
        "sparse.dok_array",
        "from scipy import sparse; x = sparse.dok_array((2, 2)); x[0, 0] = 1",
        "x[0, 1] = 7",
        "x.toarray().tolist()",
    ),
    LibraryClass(
        "scipy",
        "spatial.Delaunay",
        "from scipy.spatial import Delaunay\n"
        "x = Delaunay([[0, 0], [0, 1.1], [1, 0], [1, 1]], incremental=True)",
        "x.add_points([[.5, .5]])",
        "(x.simplices.tolist(), x.points.tolist())",
    ),
    LibraryClass(
        "scipy",
        "spatial.ConvexHull",
        "from scipy.spatial import ConvexHull\n"
        "x = ConvexHull([[0, 0], [0, 1], [1, 0], [.1, .2]], incremental=True)",
        "x.add_points([[1, 1]])",
        "(sorted(x.vertices.tolist()), x.area)",
    ),
    LibraryClass(
        "scipy",
        "spatial.KDTree",
        "from scipy.spatial import KDTree; x = KDTree([[0, 0], [1, 1], [2, 0]])",
        "x = KDTree([[5, 5]])",
        "x.query([2, 1])",
    ),
    LibraryClass(
        "scipy",
        "spatial.transform.Rotation",
        "from scipy.spatial.transform import Rotation\n"
        "x = Rotation.from_rotvec([[1, 0, 0], [0, 2, 0]])",
        "x[0] = x[1]",
        "x.as_quat().round(6).tolist()",
    ),
    LibraryClass(
        "scipy",
        "interpolate.CubicSpline",
        "from scipy.interpolate import CubicSpline; x = CubicSpline([0, 1, 2], [0, 1, 4])",
        "x.c[0] = 7; x.extrapolate = False",
        "(x.c.tolist(), x.extrapolate)",
    ),
    LibraryClass(
        "scipy",
        "optimize.OptimizeResult",
        "from scipy.optimize import minimize, rosen; x = minimize(rosen, [1.3, .7], tol=1e-3)",
        "x.x[0] = 5; x.success = 'changed'; x['new'] = 1",
        "sorted((k, str(v)) for k, v in x.items())",
    ),
    LibraryClass(
        "scipy",
        "signal.TransferFunction",
        "from scipy import signal; x = signal.lti([1.0], [1.0, 2.0])",
        "x.num = [5.0]; x.den = [7.0, 1.0]",
        "(x.num.tolist(), x.den.tolist())",
    ),
    LibraryClass(
        "scipy",
        "stats.rv_frozen",
        "from scipy import stats; x = stats.norm(1, scale=2)",
        "x.kwds['scale'] = 5; x.args = (3,)",
        "(x.args, x.kwds, x.mean())",
    ),
    LibraryClass(
        "scipy",
        "stats.gaussian_kde",
        "from scipy import stats; x = stats.gaussian_kde([1.0, 2.0, 5.0])",
        "x.set_bandwidth(.2)",
        "(x.factor, x([1.5]).tolist())",
    ),
    _estimator("cluster", "KMeans", "2, n_init=1, random_state=0", ""),
    _estimator("cluster", "MiniBatchKMeans", "2, n_init=1, random_state=0", ""),
    _estimator("cluster", "DBSCAN", fit=""),
    _estimator("compose", "ColumnTransformer", "[('a', 'passthrough', [0, 1])]", ""),
    _estimator("covariance", "EmpiricalCovariance", fit=""),
    _estimator("decomposition", "PCA", "2", ""),
    _estimator("decomposition", "IncrementalPCA", "2", ""),
    _estimator("discriminant_analysis", "LinearDiscriminantAnalysis"),
    _estimator("dummy", "DummyClassifier"),
    _estimator("ensemble", "AdaBoostClassifier", "n_estimators=3, random_state=0"),
    _estimator("ensemble", "GradientBoostingRegressor", "n_estimators=3, random_state=0"),
    _estimator("ensemble", "HistGradientBoostingClassifier", "max_iter=3"),
    _estimator("ensemble", "RandomForestClassifier", "3, random_state=0"),
    _estimator("feature_selection", "SelectPercentile"),
    _estimator("gaussian_process", "GaussianProcessRegressor", "optimizer=None"),
    _estimator("impute", "KNNImputer", fit=""),
    _estimator("impute", "SimpleImputer", fit=""),
    LibraryClass(
        "sklearn",
        "isotonic.IsotonicRegression",
        "from sklearn.isotonic import IsotonicRegression\n"
        "x = IsotonicRegression().fit([1, 2, 3], [1, 3, 2])",
        "x.fit([1, 2, 3], [5, 6, 7])",
        "x.predict([1.5, 2.5]).tolist()",
    ),
    _estimator("kernel_ridge", "KernelRidge"),
    _estimator("linear_model", "LinearRegression"),
    _estimator("linear_model", "LogisticRegression"),
    _estimator("linear_model", "SGDClassifier", "random_state=0"),
    _estimator("manifold", "LocallyLinearEmbedding", "random_state=0", ""),
    _estimator("mixture", "GaussianMixture", "2, random_state=0", ""),
    _estimator("multiclass", "OneVsRestClassifier", "__import__('sklearn.svm').svm.LinearSVC()"),
    _estimator("naive_bayes", "GaussianNB"),
    _estimator("neighbors", "KNeighborsClassifier"),
    _estimator("neighbors", "NearestNeighbors", "algorithm='kd_tree'", ""),
    _estimator("neural_network", "MLPClassifier", "4, n_iter_no_change=1, tol=9, random_state=0"),
    _estimator("preprocessing", "OneHotEncoder", fit=""),
    _estimator("preprocessing", "StandardScaler", fit=""),
    _estimator("random_projection", "GaussianRandomProjection", "2, random_state=0", ""),
    _estimator("svm", "LinearSVC", "random_state=0"),
    _estimator("svm", "SVC"),
    _estimator("tree", "DecisionTreeClassifier", "random_state=0"),
    LibraryClass(
        "sklearn",
        "pipeline.Pipeline",
        f"{_SKLEARN}from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\nfrom sklearn.svm import SVC\n"
        "x = make_pipeline(StandardScaler(), SVC()).fit(X, y)",
        "x.set_params(svc__C=5); x.fit(Z, y); x.steps.append(('last', None))",
        "(x.steps, x[1].C, x[0].mean_.tolist(), x[1].support_.tolist())",
    ),
    LibraryClass(
        "sklearn",
        "model_selection.GridSearchCV",
        f"{_SKLEARN}from sklearn.model_selection import GridSearchCV\n"
        "from sklearn.svm import SVC\nx = GridSearchCV(SVC(), {'C': [1, 2]}, cv=2).fit(X, y)",
        "x.fit(Z, y); x.param_grid['C'] = [3]",
        "(x.param_grid, x.best_estimator_.support_.tolist())",
    ),
    LibraryClass(
        "sklearn",
        "feature_extraction.text.CountVectorizer",
        "from sklearn.feature_extraction.text import CountVectorizer\n"
        "x = CountVectorizer().fit(['one two', 'three'])",
        "x.fit(['four']); x.stop_words = ['two']",
        "(x.vocabulary_, x.stop_words)",
    ),
    LibraryClass(
        "sklearn",
        "feature_extraction.text.TfidfVectorizer",
        "from sklearn.feature_extraction.text import TfidfVectorizer\n"
        "x = TfidfVectorizer().fit(['one two', 'three'])",
        "x.fit(['four'])",
        "(x.vocabulary_, x.idf_.tolist())",
    ),
    LibraryClass(
        "sklearn",
        "utils.Bunch",
        "from sklearn.datasets import load_iris; x = load_iris()",
        "x.data[0, 0] = 15; x.new = 1",
        "(x.data[0].tolist(), sorted(x))",
    ),
    LibraryClass(
        "sklearn",
        "base.BaseEstimator",
        "from sklearn.base import BaseEstimator\n"
        "class Mine(BaseEstimator):\n    def __init__(self, p=1): self.p = p\nx = Mine(2)",
        "x.p = 3; Mine.q = 4",
        "(x.get_params(), getattr(x, 'q', None))",
    ),
    LibraryClass(
        "networkx",
        "Graph",
        "import networkx as nx; x = nx.path_graph(3)",
        "x.add_edge(0, 9, w=1); x.nodes[0]['c'] = 1; x.remove_node(1)",
        "(sorted(x.edges(data=True)), sorted(x.nodes(data=True)), sorted(x.adj))",
    ),
    LibraryClass(
        "networkx",
        "DiGraph",
        "import networkx as nx; x = nx.DiGraph([(1, 2)])",
        "x.add_edge(2, 1); x.remove_edge(1, 2); x.graph['k'] = 1",
        "(sorted(x.edges), x.graph, {n: list(x.pred[n]) for n in x})",
    ),
    LibraryClass(
        "networkx",
        "MultiGraph",
        "import networkx as nx; x = nx.MultiGraph([(1, 2)])",
        "x.add_edge(1, 2, w=3)",
        "sorted(x.edges(keys=True, data=True), key=str)",
    ),
    LibraryClass(
        "matplotlib",
        "figure.Figure",
        f"{_AXES}x = figure",
        "x.set_size_inches(9, 9); x.add_subplot(222); x.suptitle('t')",
        "(x.get_size_inches().tolist(), len(x.axes), x.get_suptitle())",
    ),
    LibraryClass(
        "matplotlib",
        "axes.Axes",
        f"{_AXES}x = axes; x.plot([1, 2])",
        "x.set_xlabel('t'); x.plot([3, 4]); x.set_xlim(0, 9); x.grid(True)",
        "(x.get_xlabel(), len(x.lines), x.get_xlim())",
    ),
    LibraryClass(
        "matplotlib",
        "lines.Line2D",
        f"{_AXES}(x,) = axes.plot([1, 2])",
        "x.set_data([1, 2, 3], [4, 5, 6]); x.set_color('red')",
        "(x.get_xydata().tolist(), x.get_color())",
    ),
    LibraryClass(
        "matplotlib",
        "colors.ListedColormap",
        "from matplotlib.colors import ListedColormap; x = ListedColormap(['r', 'g'])",
        "x.N = 10; x.colors.append('b')",
        "(x.N, x.colors)",
    ),
    LibraryClass(
        "matplotlib",
        "colors.BoundaryNorm",
        "from matplotlib.colors import BoundaryNorm; x = BoundaryNorm([-1, 0, 1], 2)",
        "x.vmin = -5; x.boundaries[0] = -3",
        "(x.vmin, x.boundaries.tolist())",
    ),
    LibraryClass(
        "matplotlib",
        "dates.WeekdayLocator",
        "from matplotlib.dates import MO, WeekdayLocator; x = WeekdayLocator(byweekday=MO)",
        "x.MAXTICKS = 7; x.tz = 'changed'",
        "(x.MAXTICKS, str(x.tz))",
    ),
    LibraryClass(
        "matplotlib",
        "dates.AutoDateFormatter",
        "from matplotlib.dates import AutoDateFormatter, AutoDateLocator\n"
        "x = AutoDateFormatter(AutoDateLocator())",
        "x.scaled[1 / 1440] = '%M'; x.defaultfmt = '%Y'",
        "(x.scaled, x.defaultfmt)",
    ),
    LibraryClass(
        "matplotlib",
        "patches.Ellipse",
        "from matplotlib.patches import Ellipse; x = Ellipse((.4, .5), .1, .3)",
        "x.set_center((2, 3)); x.set_angle(9)",
        "(x.get_center(), x.angle, x.get_verts()[0].round(6).tolist())",
    ),
    LibraryClass(
        "matplotlib",
        "patches.FancyArrowPatch",
        "from matplotlib.patches import FancyArrowPatch; x = FancyArrowPatch((0, 0), (1, 1))",
        "x.set_linewidth(2); x.set_positions((5, 5), (6, 6))",
        "(x.get_linewidth(), x._posA_posB)",
    ),
    LibraryClass(
        "seaborn",
        "JointGrid",
        "import matplotlib; matplotlib.use('agg')\nimport pandas as pd, seaborn as sns\n"
        "x = sns.JointGrid(data=pd.DataFrame({'a': [1, 2], 'b': [3, 5]}), x='a', y='b')",
        "x.ax_joint.set_title('t'); x.x[0] = 9; x.hue = 'h'",
        "(x.ax_joint.get_title(), list(x.x), x.hue)",
    ),
    LibraryClass(
        "sympy",
        "Matrix",
        "import sympy; x = sympy.Matrix([[1, 2], [3, 4]])",
        "x[0, 0] = 9; x.row_del(1)",
        "x",
    ),
    LibraryClass(
        "sympy",
        "Expr",
        "import sympy; t = sympy.Symbol('t'); x = t**2 + 1",
        "x = x.diff(t)",
        "x",
    ),
    LibraryClass(
        "nltk",
        "PorterStemmer",
        "from nltk.stem import PorterStemmer; x = PorterStemmer()",
        "x.pool['cats'] = 'dog'; x.mode = 'changed'",
        "(x.stem('cats'), x.mode, sorted(x.pool)[:3])",
    ),
    LibraryClass(
        "nltk",
        "FreqDist",
        "from nltk import FreqDist; x = FreqDist('abca')",
        "x['z'] += 4; x.N()",
        "(sorted(x.items()), x.N())",
    ),
    LibraryClass(
        "nltk",
        "Tree",
        "from nltk import Tree; x = Tree.fromstring('(S (NP a) (VP b))')",
        "x[0].set_label('X'); x.append('z')",
        "str(x)",
    ),
    LibraryClass(
        "PIL",
        "Image",
        "from PIL import Image; x = Image.new('RGB', (2, 2), 'red')",
        "x.putpixel((0, 0), (1, 2, 3)); x.info['k'] = 1",
        "(x.tobytes(), x.info)",
    ),
    LibraryClass(
        "skimage",
        "transform.AffineTransform",
        "from skimage.transform import AffineTransform; x = AffineTransform(scale=2)",
        "x.params[0, 0] = 9",
        "x.params.tolist()",
    ),
    LibraryClass(
        "skimage",
        "feature.ORB",
        "from skimage.feature import ORB; x = ORB(n_keypoints=5)",
        "x.n_keypoints = 9; x.keypoints = [1]",
        "sorted((k, str(v)) for k, v in vars(x).items())",
    ),
    LibraryClass(
        "cv2",
        "KalmanFilter",
        "import cv2; x = cv2.KalmanFilter(2, 1)",
        "x.statePost = x.statePost + 5",
        "x.statePost.tolist()",
    ),
    LibraryClass(
        "statsmodels",
        "GLM",
        "import numpy as np, statsmodels.api as sm\n"
        "x = sm.GLM([1., 2., 4.], np.ones((3, 1)), family=sm.families.Gamma())",
        "x.family = sm.families.Gaussian(); x.endog[0] = 9",
        "(type(x.family).__name__, x.endog.tolist())",
    ),
    LibraryClass(
        "statsmodels",
        "RegressionResults",
        "import numpy as np, statsmodels.api as sm\n"
        "x = sm.OLS([1., 2., 4.], sm.add_constant(np.array([1., 2., 3.]))).fit()",
        "x._results.params[0] = 9; x._results.new = 1",
        "(x.params.tolist(), hasattr(x._results, 'new'))",
    ),
    *(
        LibraryClass("plotly", name, make, change, _FIGURE)
        for name, make, change in [
            (
                "graph_objects.Figure",
                "import plotly.graph_objects as go; x = go.Figure(go.Bar(x=['A'], y=[1]))",
                "x.update_layout(title='t'); x.add_bar(x=['B'], y=[2]); x.data[0].y = [7]",
            ),
            (
                "express.scatter",
                "import plotly.express as px; x = px.scatter(x=[1, 2], y=[3, 4])",
                "x.update_traces(marker=dict(size=10))",
            ),
            (
                "subplots.make_subplots",
                "from plotly.subplots import make_subplots; x = make_subplots(rows=1, cols=2)",
                "x.update_layout(title='t'); x.update_xaxes(title='u')",
            ),
        ]
    ),
    LibraryClass(
        "bokeh",
        "plotting.figure",
        "from bokeh.plotting import figure; x = figure(title='a'); x.line([1, 2], [3, 4])",
        "x.title.text = 'b'; x.line([5], [6])",
        "(x.title.text, len(x.renderers))",
    ),
    LibraryClass(
        "altair",
        "Chart",
        "import altair as alt; x = alt.Chart(alt.InlineData([{'a': 1}])).mark_bar()",
        "x.mark = 'line'; x.title = 't'",
        "x.to_dict(validate=False)",
    ),
    LibraryClass(
        "arrow", "Arrow", "import arrow; x = arrow.get(2020, 1, 1)", "x = x.shift(days=1)", "x"
    ),
    LibraryClass(
        "lmfit",
        "Parameters",
        "import lmfit; x = lmfit.Parameters(); x.add('a', value=1)",
        "x['a'].value = 5; x.add('b', expr='2 * a')",
        "[(p.name, p.value, p.expr) for p in x.values()]",
    ),
    LibraryClass(
        "dask",
        "array.Array",
        "import dask.array as da; x = da.arange(4, chunks=2)",
        "x[0] = 9",
        "x.compute().tolist()",
    ),
    LibraryClass(
        "gensim",
        "corpora.Dictionary",
        "from gensim.corpora import Dictionary; x = Dictionary([['a', 'b']])",
        "x.add_documents([['c']])",
        "(x.token2id, x.num_docs)",
    ),
    LibraryClass(
        "gensim",
        "models.Word2Vec",
        "from gensim.models import Word2Vec\n"
        "x = Word2Vec([['a', 'b']] * 3, vector_size=4, min_count=1, workers=1, seed=1)",
        "x.wv.vectors[0] = 7; x.alpha = 1",
        "(x.wv.vectors.tolist(), x.alpha)",
    ),
    LibraryClass(
        "textblob",
        "TextBlob",
        "from textblob import TextBlob; x = TextBlob('good')",
        "x.raw = x.string = 'bad'; x.stripped = 'q'",
        "(x.raw, x.string, x.stripped)",
    ),
    LibraryClass(
        "bs4",
        "BeautifulSoup",
        "from bs4 import BeautifulSoup; x = BeautifulSoup('<p>a</p><b>c</b>', 'html.parser')",
        "x.p.string = 'z'; x.b.decompose(); x.p['class'] = 'k'",
        "str(x)",
    ),
    LibraryClass(
        "tqdm", "tqdm", "from tqdm import tqdm; x = tqdm(total=5, disable=True)", "x.n = 3", "x.n"
    ),
    LibraryClass(
        "ipywidgets",
        "IntSlider",
        "import ipywidgets; x = ipywidgets.IntSlider(3)",
        "x.value = 5",
        "x.value",
    ),
    LibraryClass(
        "xgboost",
        "XGBRegressor",
        f"{_SKLEARN}import xgboost; x = xgboost.XGBRegressor(n_estimators=2).fit(X, y)",
        "x.learning_rate = .1; x.fit(Z, y)",
        "(x.learning_rate, x.predict(X).round(5).tolist())",
    ),
    LibraryClass(
        "xgboost",
        "Booster",
        f"{_SKLEARN}import xgboost as xgb\nx = xgb.train({{}}, xgb.DMatrix(X, y), 2)",
        "x.update(xgb.DMatrix(Z, y), 2); x.set_attr(k='v')",
        "(x.num_boosted_rounds(), x.attributes())",
    ),
    LibraryClass(
        "lightgbm",
        "Dataset",
        f"{_SKLEARN}import lightgbm; x = lightgbm.Dataset(X, y)",
        "x.set_group([20, 20]); x.label = None",
        "(str(x.group), x.label is None)",
    ),
    LibraryClass(
        "lightgbm",
        "LGBMClassifier",
        f"{_SKLEARN}from lightgbm import LGBMClassifier\n"
        "x = LGBMClassifier(n_estimators=2, verbose=-1).fit(X, y)",
        "x.fit(Z, y); x.set_params(n_estimators=3)",
        "(x.n_estimators, x.predict_proba(X).round(5).tolist())",
    ),
    *(
        LibraryClass("astropy", name, make, change, look)
        for name, make, change, look in [
            (
                "units.Quantity",
                "from astropy import units as u; x = [1., 2.] * u.m",
                "x[1] = 100 * u.m; x.value[0] = 7",
                "x",
            ),
            (
                "coordinates.SkyCoord",
                "import astropy.coordinates as c, astropy.units as u\n"
                "x = c.SkyCoord(ra=[1, 2] * u.deg, dec=[3, 4] * u.deg)",
                "x[0] = x[1]",
                "(x.ra.deg.tolist(), x.dec.deg.tolist())",
            ),
            (
                "table.QTable",
                "import astropy.units as u; from astropy.table import QTable\n"
                "x = QTable([[1, 2], [3, 4] * u.m], names=('a', 'b'), meta={'k': 1})",
                "x['a'][0] = 9; x.add_column([5, 6], name='c'); x.meta['k'] = 2\n"
                "x.add_row((7, 8 * u.m, 9))",
                "(x.colnames, [list(map(str, r)) for r in x], x.meta)",
            ),
            (
                "io.fits.HDUList",
                "from astropy.io import fits; x = fits.HDUList([fits.PrimaryHDU()])",
                "x.append(fits.ImageHDU()); x[0].header['K'] = 1",
                "(len(x), 'K' in x[0].header)",
            ),
            (
                "modeling.models.Linear1D",
                "from astropy.modeling.models import Linear1D; x = Linear1D(1.0, .5)",
                "x.slope = 3; x.name = 'n'; x.slope.fixed = True",
                "(x(2.0), x.name, x.slope.fixed)",
            ),
            (
                "modeling.models.Polynomial2D",
                "from astropy.modeling.models import Polynomial2D; x = Polynomial2D(2)",
                "x.c0_1 = 4; x.x_domain = (-5, 5)",
                "(x.parameters.tolist(), x.x_domain)",
            ),
            (
                "modeling.fitting.LinearLSQFitter",
                "from astropy.modeling.fitting import LinearLSQFitter; x = LinearLSQFitter()",
                "x._calc_uncertainties = True; x.fit_info['rank'] = 3",
                "(x._calc_uncertainties, x.fit_info['rank'])",
            ),
            (
                "nddata.NDDataRef",
                "import numpy as np; from astropy.nddata import NDDataRef, StdDevUncertainty\n"
                "x = NDDataRef(np.ones(3), uncertainty=StdDevUncertainty(np.ones(3)))",
                "x.data[0] = 9; x.uncertainty.array[1] = 5; x.mask = True",
                "(x.data.tolist(), x.uncertainty.array.tolist(), x.mask)",
            ),
            (
                "stats.SigmaClip",
                "from astropy.stats import SigmaClip; x = SigmaClip(sigma=2)",
                "x.sigma = 3",
                "x",
            ),
            (
                "wcs.WCS",
                "from astropy.wcs import WCS; x = WCS(naxis=2)",
                "x.wcs.crpix = [100, 100]; x.wcs.cdelt = [2, 2]",
                "(x.wcs.crpix.tolist(), x.wcs.cdelt.tolist())",
            ),
            (
                "wcs.Celprm",
                "from astropy.wcs import Celprm; x = Celprm()",
                "x.ref = [180.0, 90.0, 0.0, 0.0]",
                "list(x.ref)",
            ),
            (
                "visualization.ImageNormalize",
                "from astropy.visualization import ImageNormalize\n"
                "x = ImageNormalize(vmin=0, vmax=9)",
                "x.vmin = 5; x.clip = True",
                "(x.vmin, x.clip)",
            ),
            (
                "convolution.Box2DKernel",
                "from astropy.convolution import Box2DKernel; x = Box2DKernel(3)",
                "x.array[0][0] = 7; x.normalize()",
                "x.array.tolist()",
            ),
            (
                "time.Time",
                "from astropy.time import Time; x = Time(['2020-01-01', '2021-01-01'])",
                "x[0] = '2022-02-02'; x.format = 'jd'",
                "(str(x), x.format)",
            ),
        ]
    ),
]
