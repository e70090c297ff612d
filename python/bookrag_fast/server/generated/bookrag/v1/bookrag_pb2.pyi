from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Book(_message.Message):
    __slots__ = ("id", "title", "name", "pages", "nodes", "entities", "relations", "sha256", "embedder", "created", "toc_source", "warnings", "confidence", "models")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    ENTITIES_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    EMBEDDER_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    TOC_SOURCE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    name: str
    pages: int
    nodes: int
    entities: int
    relations: int
    sha256: str
    embedder: str
    created: str
    toc_source: str
    warnings: _containers.RepeatedScalarFieldContainer[str]
    confidence: float
    models: _containers.RepeatedCompositeFieldContainer[ModelUse]
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., name: _Optional[str] = ..., pages: _Optional[int] = ..., nodes: _Optional[int] = ..., entities: _Optional[int] = ..., relations: _Optional[int] = ..., sha256: _Optional[str] = ..., embedder: _Optional[str] = ..., created: _Optional[str] = ..., toc_source: _Optional[str] = ..., warnings: _Optional[_Iterable[str]] = ..., confidence: _Optional[float] = ..., models: _Optional[_Iterable[_Union[ModelUse, _Mapping]]] = ...) -> None: ...

class ModelUse(_message.Message):
    __slots__ = ("role", "name", "model", "calls", "cached", "prompt_tokens", "completion_tokens", "usd", "fallbacks")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    USD_FIELD_NUMBER: _ClassVar[int]
    FALLBACKS_FIELD_NUMBER: _ClassVar[int]
    role: str
    name: str
    model: str
    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    usd: float
    fallbacks: int
    def __init__(self, role: _Optional[str] = ..., name: _Optional[str] = ..., model: _Optional[str] = ..., calls: _Optional[int] = ..., cached: _Optional[int] = ..., prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., usd: _Optional[float] = ..., fallbacks: _Optional[int] = ...) -> None: ...

class IndexBookRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: IndexBookHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[IndexBookHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class IndexBookHeader(_message.Message):
    __slots__ = ("server_path", "upload", "password")
    SERVER_PATH_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    server_path: str
    upload: Upload
    password: str
    def __init__(self, server_path: _Optional[str] = ..., upload: _Optional[_Union[Upload, _Mapping]] = ..., password: _Optional[str] = ...) -> None: ...

class Upload(_message.Message):
    __slots__ = ("name", "size", "sha256")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    name: str
    size: int
    sha256: str
    def __init__(self, name: _Optional[str] = ..., size: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...

class IndexBookResponse(_message.Message):
    __slots__ = ("progress", "book")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    BOOK_FIELD_NUMBER: _ClassVar[int]
    progress: IndexProgress
    book: Book
    def __init__(self, progress: _Optional[_Union[IndexProgress, _Mapping]] = ..., book: _Optional[_Union[Book, _Mapping]] = ...) -> None: ...

class IndexProgress(_message.Message):
    __slots__ = ("stage", "done", "total", "unit", "rate", "eta_s")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    ETA_S_FIELD_NUMBER: _ClassVar[int]
    stage: str
    done: int
    total: int
    unit: str
    rate: float
    eta_s: float
    def __init__(self, stage: _Optional[str] = ..., done: _Optional[int] = ..., total: _Optional[int] = ..., unit: _Optional[str] = ..., rate: _Optional[float] = ..., eta_s: _Optional[float] = ...) -> None: ...

class ListBooksRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListBooksResponse(_message.Message):
    __slots__ = ("books",)
    BOOKS_FIELD_NUMBER: _ClassVar[int]
    books: _containers.RepeatedCompositeFieldContainer[Book]
    def __init__(self, books: _Optional[_Iterable[_Union[Book, _Mapping]]] = ...) -> None: ...

class DeleteBookRequest(_message.Message):
    __slots__ = ("book",)
    BOOK_FIELD_NUMBER: _ClassVar[int]
    book: str
    def __init__(self, book: _Optional[str] = ...) -> None: ...

class DeleteBookResponse(_message.Message):
    __slots__ = ("book",)
    BOOK_FIELD_NUMBER: _ClassVar[int]
    book: Book
    def __init__(self, book: _Optional[_Union[Book, _Mapping]] = ...) -> None: ...

class GetTreeRequest(_message.Message):
    __slots__ = ("book", "omit_text")
    BOOK_FIELD_NUMBER: _ClassVar[int]
    OMIT_TEXT_FIELD_NUMBER: _ClassVar[int]
    book: str
    omit_text: bool
    def __init__(self, book: _Optional[str] = ..., omit_text: bool = ...) -> None: ...

class GetTreeResponse(_message.Message):
    __slots__ = ("book_id", "nodes")
    BOOK_ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    book_id: str
    nodes: _containers.RepeatedCompositeFieldContainer[TreeNode]
    def __init__(self, book_id: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[TreeNode, _Mapping]]] = ...) -> None: ...

class TreeNode(_message.Message):
    __slots__ = ("node_id", "parent", "kind", "level", "title", "page", "page_last", "label", "text", "evidence", "confidence", "summary")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    PAGE_LAST_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    parent: int
    kind: str
    level: int
    title: str
    page: int
    page_last: int
    label: str
    text: str
    evidence: _containers.RepeatedScalarFieldContainer[str]
    confidence: float
    summary: str
    def __init__(self, node_id: _Optional[int] = ..., parent: _Optional[int] = ..., kind: _Optional[str] = ..., level: _Optional[int] = ..., title: _Optional[str] = ..., page: _Optional[int] = ..., page_last: _Optional[int] = ..., label: _Optional[str] = ..., text: _Optional[str] = ..., evidence: _Optional[_Iterable[str]] = ..., confidence: _Optional[float] = ..., summary: _Optional[str] = ...) -> None: ...

class SearchRequest(_message.Message):
    __slots__ = ("question", "books", "budget_tokens")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    BOOKS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    question: str
    books: _containers.RepeatedScalarFieldContainer[str]
    budget_tokens: int
    def __init__(self, question: _Optional[str] = ..., books: _Optional[_Iterable[str]] = ..., budget_tokens: _Optional[int] = ...) -> None: ...

class SearchResponse(_message.Message):
    __slots__ = ("evidence", "plan", "trace", "notes", "usage")
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    plan: QueryPlan
    trace: Trace
    notes: _containers.RepeatedScalarFieldContainer[str]
    usage: Usage
    def __init__(self, evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ..., plan: _Optional[_Union[QueryPlan, _Mapping]] = ..., trace: _Optional[_Union[Trace, _Mapping]] = ..., notes: _Optional[_Iterable[str]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ...) -> None: ...

class AskRequest(_message.Message):
    __slots__ = ("question", "books", "budget_tokens")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    BOOKS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    question: str
    books: _containers.RepeatedScalarFieldContainer[str]
    budget_tokens: int
    def __init__(self, question: _Optional[str] = ..., books: _Optional[_Iterable[str]] = ..., budget_tokens: _Optional[int] = ...) -> None: ...

class AskResponse(_message.Message):
    __slots__ = ("answer",)
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    answer: Answer
    def __init__(self, answer: _Optional[_Union[Answer, _Mapping]] = ...) -> None: ...

class AskStreamRequest(_message.Message):
    __slots__ = ("question", "books", "budget_tokens")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    BOOKS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    question: str
    books: _containers.RepeatedScalarFieldContainer[str]
    budget_tokens: int
    def __init__(self, question: _Optional[str] = ..., books: _Optional[_Iterable[str]] = ..., budget_tokens: _Optional[int] = ...) -> None: ...

class AskStreamResponse(_message.Message):
    __slots__ = ("plan", "evidence", "text", "answer")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    plan: QueryPlan
    evidence: EvidenceList
    text: str
    answer: Answer
    def __init__(self, plan: _Optional[_Union[QueryPlan, _Mapping]] = ..., evidence: _Optional[_Union[EvidenceList, _Mapping]] = ..., text: _Optional[str] = ..., answer: _Optional[_Union[Answer, _Mapping]] = ...) -> None: ...

class PageRef(_message.Message):
    __slots__ = ("number", "label")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    number: int
    label: str
    def __init__(self, number: _Optional[int] = ..., label: _Optional[str] = ...) -> None: ...

class Box(_message.Message):
    __slots__ = ("page", "x0", "y0", "x1", "y1")
    PAGE_FIELD_NUMBER: _ClassVar[int]
    X0_FIELD_NUMBER: _ClassVar[int]
    Y0_FIELD_NUMBER: _ClassVar[int]
    X1_FIELD_NUMBER: _ClassVar[int]
    Y1_FIELD_NUMBER: _ClassVar[int]
    page: int
    x0: float
    y0: float
    x1: float
    y1: float
    def __init__(self, page: _Optional[int] = ..., x0: _Optional[float] = ..., y0: _Optional[float] = ..., x1: _Optional[float] = ..., y1: _Optional[float] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("book", "node_id", "kind", "text", "pages", "boxes", "section", "scores", "tokens")
    class ScoresEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    BOOK_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    BOXES_FIELD_NUMBER: _ClassVar[int]
    SECTION_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    book: str
    node_id: int
    kind: str
    text: str
    pages: _containers.RepeatedCompositeFieldContainer[PageRef]
    boxes: _containers.RepeatedCompositeFieldContainer[Box]
    section: _containers.RepeatedScalarFieldContainer[str]
    scores: _containers.ScalarMap[str, float]
    tokens: int
    def __init__(self, book: _Optional[str] = ..., node_id: _Optional[int] = ..., kind: _Optional[str] = ..., text: _Optional[str] = ..., pages: _Optional[_Iterable[_Union[PageRef, _Mapping]]] = ..., boxes: _Optional[_Iterable[_Union[Box, _Mapping]]] = ..., section: _Optional[_Iterable[str]] = ..., scores: _Optional[_Mapping[str, float]] = ..., tokens: _Optional[int] = ...) -> None: ...

class EvidenceList(_message.Message):
    __slots__ = ("evidence",)
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    def __init__(self, evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ...) -> None: ...

class Citation(_message.Message):
    __slots__ = ("book", "node_id", "pages", "boxes", "section", "quote")
    BOOK_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    BOXES_FIELD_NUMBER: _ClassVar[int]
    SECTION_FIELD_NUMBER: _ClassVar[int]
    QUOTE_FIELD_NUMBER: _ClassVar[int]
    book: str
    node_id: int
    pages: _containers.RepeatedCompositeFieldContainer[PageRef]
    boxes: _containers.RepeatedCompositeFieldContainer[Box]
    section: _containers.RepeatedScalarFieldContainer[str]
    quote: str
    def __init__(self, book: _Optional[str] = ..., node_id: _Optional[int] = ..., pages: _Optional[_Iterable[_Union[PageRef, _Mapping]]] = ..., boxes: _Optional[_Iterable[_Union[Box, _Mapping]]] = ..., section: _Optional[_Iterable[str]] = ..., quote: _Optional[str] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("text", "citations", "plan", "trace", "usage", "enough", "notes")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CITATIONS_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    ENOUGH_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    text: str
    citations: _containers.RepeatedCompositeFieldContainer[Citation]
    plan: QueryPlan
    trace: Trace
    usage: Usage
    enough: bool
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, text: _Optional[str] = ..., citations: _Optional[_Iterable[_Union[Citation, _Mapping]]] = ..., plan: _Optional[_Union[QueryPlan, _Mapping]] = ..., trace: _Optional[_Union[Trace, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., enough: bool = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class QueryPlan(_message.Message):
    __slots__ = ("question", "category", "steps", "filters", "operation", "sub_plans", "synthesis", "reason")
    class Category(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CATEGORY_UNSPECIFIED: _ClassVar[QueryPlan.Category]
        CATEGORY_SINGLE_HOP: _ClassVar[QueryPlan.Category]
        CATEGORY_MULTI_HOP: _ClassVar[QueryPlan.Category]
        CATEGORY_GLOBAL: _ClassVar[QueryPlan.Category]
    CATEGORY_UNSPECIFIED: QueryPlan.Category
    CATEGORY_SINGLE_HOP: QueryPlan.Category
    CATEGORY_MULTI_HOP: QueryPlan.Category
    CATEGORY_GLOBAL: QueryPlan.Category
    class Operation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OPERATION_UNSPECIFIED: _ClassVar[QueryPlan.Operation]
        OPERATION_COUNT: _ClassVar[QueryPlan.Operation]
        OPERATION_LIST: _ClassVar[QueryPlan.Operation]
        OPERATION_SUMMARIZE: _ClassVar[QueryPlan.Operation]
        OPERATION_ANALYZE: _ClassVar[QueryPlan.Operation]
    OPERATION_UNSPECIFIED: QueryPlan.Operation
    OPERATION_COUNT: QueryPlan.Operation
    OPERATION_LIST: QueryPlan.Operation
    OPERATION_SUMMARIZE: QueryPlan.Operation
    OPERATION_ANALYZE: QueryPlan.Operation
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    SUB_PLANS_FIELD_NUMBER: _ClassVar[int]
    SYNTHESIS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    question: str
    category: QueryPlan.Category
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    filters: _containers.RepeatedCompositeFieldContainer[Filter]
    operation: QueryPlan.Operation
    sub_plans: _containers.RepeatedCompositeFieldContainer[QueryPlan]
    synthesis: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    def __init__(self, question: _Optional[str] = ..., category: _Optional[_Union[QueryPlan.Category, str]] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., filters: _Optional[_Iterable[_Union[Filter, _Mapping]]] = ..., operation: _Optional[_Union[QueryPlan.Operation, str]] = ..., sub_plans: _Optional[_Iterable[_Union[QueryPlan, _Mapping]]] = ..., synthesis: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("operator", "params")
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    operator: str
    params: _struct_pb2.Struct
    def __init__(self, operator: _Optional[str] = ..., params: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class Filter(_message.Message):
    __slots__ = ("type", "value")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        TYPE_UNSPECIFIED: _ClassVar[Filter.Type]
        TYPE_SECTION: _ClassVar[Filter.Type]
        TYPE_IMAGE: _ClassVar[Filter.Type]
        TYPE_TABLE: _ClassVar[Filter.Type]
        TYPE_PAGE: _ClassVar[Filter.Type]
    TYPE_UNSPECIFIED: Filter.Type
    TYPE_SECTION: Filter.Type
    TYPE_IMAGE: Filter.Type
    TYPE_TABLE: Filter.Type
    TYPE_PAGE: Filter.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    type: Filter.Type
    value: str
    def __init__(self, type: _Optional[_Union[Filter.Type, str]] = ..., value: _Optional[str] = ...) -> None: ...

class Trace(_message.Message):
    __slots__ = ("operators",)
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    operators: _containers.RepeatedCompositeFieldContainer[OperatorTrace]
    def __init__(self, operators: _Optional[_Iterable[_Union[OperatorTrace, _Mapping]]] = ...) -> None: ...

class OperatorTrace(_message.Message):
    __slots__ = ("operator", "ms", "detail")
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    MS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    operator: str
    ms: float
    detail: _struct_pb2.Struct
    def __init__(self, operator: _Optional[str] = ..., ms: _Optional[float] = ..., detail: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("evidence_tokens", "prompt_tokens", "completion_tokens", "model_calls")
    EVIDENCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MODEL_CALLS_FIELD_NUMBER: _ClassVar[int]
    evidence_tokens: int
    prompt_tokens: int
    completion_tokens: int
    model_calls: int
    def __init__(self, evidence_tokens: _Optional[int] = ..., prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., model_calls: _Optional[int] = ...) -> None: ...
